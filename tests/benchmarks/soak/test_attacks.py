"""Each attack finds nothing in a moment; those that run tests find what fails in them."""

from pytest import fixture, mark

from soak import cache, damage, fuzz, logs, readers, repeated, sanitized, where
from soak.found import Found

pytestmark = mark.slow


@fixture
def found():
    return Found()


CLEAN = [  # an attack, its options, and what it counts then
    (damage, {"damages": 12}, {}),
    (logs, {"damages": 12}, {}),
    (readers, {"files": 60}, {}),
    (repeated, {"tests": ["tests/runtime/artifact/test_stored.py"]}, {}),
    (sanitized, {"tests": ["tests/runtime/c/test_host.py"]}, {}),
    (fuzz, {"kernels": 3}, {}),
    (where, {"calls": 60}, {"calls": 60}),
    (cache, {"starts": 3, "kills": 2}, {"builders that were killed": 2}),
]


@mark.parametrize("attack, options, counts", CLEAN, ids=lambda each: getattr(each, "__name__", ""))
def test_attack_finds_nothing(found, monkeypatch, attack, options, counts):
    for setting in ("TE_SELECT_NUM_THREADS", "TE_SELECT_PROFILE"):
        monkeypatch.setenv(setting, "")  # monkeypatch also restores what fuzz sets
    attack.attack(0, found, **options)
    assert not found.failures and found.counts
    assert counts.items() <= found.counts.items()


STRAY = """
import ctypes, subprocess
from te_select.backends.programs import c_compiler
def test_one_byte_behind(tmp_path):
    source, library = tmp_path / "stray.c", tmp_path / "stray.so"
    source.write_text("#include <stdlib.h>\\nint stray(void) { return ((char*)malloc(8))[8]; }")
    subprocess.run([*c_compiler(), "-shared", "-fPIC", source, "-o", library], check=True)
    ctypes.CDLL(str(library)).stray()
"""


@mark.parametrize(
    "attack, text, said",
    [
        (repeated, "def test_it(): assert 0", "test_planted.py::test_it - assert 0"),
        (repeated, "import os; os.abort()", ""),
        (repeated, STRAY, None),
        (sanitized, STRAY, "pytest ended with code 1:"),
    ],
)
def test_test_that_fails_is_a_failure(found, tmp_path, attack, text, said):
    path = tmp_path / "test_planted.py"
    path.write_text(text)
    attack.attack(0, found, [str(path)])
    assert len(found.failures) == (said is not None)
    assert not said or said in found.failures[0]


def test_where_finds_a_wrong_bit(found, monkeypatch):
    select = where.te_select.where

    def wrong(*arguments, **options):
        result = select(*arguments, **options)
        if result.dtype == "f4" and result.size > 100:
            result.view("u4").flat[50] ^= 1
        return result

    monkeypatch.setattr(where.te_select, "where", wrong)
    where.attack(0, found, calls=300)
    assert any("bits differ" in failure for failure in found.failures)
