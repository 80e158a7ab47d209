"""What the C compiler has made before comes from the cache."""

import ctypes
import os

import pytest

import te_select
from te_select.backends.build_key import bytes_of, digest, of_compiler
from te_select.backends.c_compiler import _run, _unpacked, open_library
from te_select.base import cache
from tests.support import flat_and_scalar


def test_what_was_made_is_not_made_again():
    made = []

    def make():
        made.append(1)
        return b"code"

    assert [bytes_of("x", ["a"], make) for _ in range(3)] == [b"code"] * 3
    assert len(made) == 1
    bytes_of("x", ["b"], make)
    bytes_of("y", ["a"], make)
    assert len(made) == 3


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data + b"x"]
)
def test_damaged_entry_is_made_again(damage):
    bytes_of("x", [], lambda: b"code")
    (entry,) = cache.entries()
    entry.write_bytes(damage(entry.read_bytes()))
    assert bytes_of("x", [], lambda: b"anew") == b"anew"
    assert bytes_of("x", [], lambda: b"not asked") == b"anew"


def test_compiler_is_another_one_if_its_file_changes(tmp_path):
    compiler = tmp_path / "cc"
    found = []
    for text, time in (("a", 1), ("a", 1), ("b", 2), ("a", 1), ("aa", 1)):
        compiler.write_text(text)
        compiler.chmod(0o755)
        os.utime(compiler, ns=(0, time))
        found.append(of_compiler((str(compiler),)))
    assert found[0] == found[1] == found[3] and len({*found}) == 3


def test_digest_is_that_of_the_compiler_of_now(tmp_path, monkeypatch):
    (tmp_path / "cc").touch(0o755)
    found = [digest()]
    monkeypatch.setenv("CC", "cc -O1")
    found.append(digest())
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert len({*found, digest()}) == 3
    assert digest("ab", "c") != digest("a", "bc")


def test_host_half_is_compiled_once_on_a_machine(tmp_path, monkeypatch):
    """Another process would not compile it again: the cache has it."""
    compiled = []
    run = _run

    def recorded(*command, output):
        assert "-O2" in command
        compiled.extend(word for word in command if word.endswith(".c"))
        run(*command, output=output)

    monkeypatch.setattr("te_select.backends.c_compiler._run", recorded)
    for number in range(2):
        _unpacked.cache_clear()
        te_select.export([flat_and_scalar(9)], tmp_path / f"{number}.so", tuning_logs=False)
    assert sum(word.endswith("host.c") for word in compiled) == 1
    assert sum(word.endswith("stub.c") for word in compiled) == 2
    assert (tmp_path / "0.so").read_bytes() == (tmp_path / "1.so").read_bytes()


def test_library_of_ours_is_compiled_once_for_its_source(tmp_path):
    source = tmp_path / "two.c"
    source.write_text("int two(void) { return TWO; }")
    for two in (2, 2, 3):
        assert open_library([source], f"-DTWO={two}").two() == two
    source.write_text("int two(void) { return 4; }")
    assert isinstance(open_library([source]), ctypes.CDLL)
    assert open_library([source]).two() == 4
    assert len(cache.entries()) == 3


def test_without_a_cache_everything_works(tmp_path, monkeypatch):
    monkeypatch.setenv("TE_SELECT_CACHE_SIZE", "0")
    source = tmp_path / "two.c"
    source.write_text("int two(void) { return 2; }")
    monkeypatch.setattr("te_select.errors.notices._warned_of", set())
    with pytest.warns(RuntimeWarning, match="cannot keep what it has built"):
        assert open_library([source]).two() == 2
