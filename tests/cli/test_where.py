"""``te-select where`` and ``te-select cache``."""

import ctypes
import os
from pathlib import Path

from pytest import fail, fixture, mark

from te_select.backends.cpu import link
from te_select.base import cache
from te_select.operator import family
from te_select.operator.stages import stages
from te_select.runtime.artifact import stored
from te_select.selecting.kernels import building, library
from tests.support.cases import the_others_slow
from tests.support.cli import refused, run, run_json
from tests.support.machines import on_x86_64

PARTS = {name: family.parts()[name] for name in ("w2", "w2_rows05")}
KERNELS = sum(map(len, PARTS.values()))
LEVELS = ["x86-64-v2", "x86-64-v3"]


@fixture(autouse=True)
def a_small_family(monkeypatch, tmp_path):
    monkeypatch.setattr(
        "te_select.tuning.calibrate.measure_if_reasoned", lambda: "the profile was measured"
    )
    monkeypatch.setattr("te_select.operator.family.parts", lambda: PARTS)
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "cache"))


def test_build_fills_the_cache_and_clear_empties_it(tmp_path):
    document = run_json("where", "build")
    path = tmp_path / "cache" / library.entry(library.WHOLE)
    assert document["path"] == str(path) and document["kernels"] == KERNELS
    found = run_json("cache", "info")  # with the host half, if this process had not made it
    sizes = {entry["name"]: entry["bytes"] for entry in found["entries"]}
    assert sizes[path.name] == document["bytes"] == path.stat().st_size
    assert (found["bytes"], found["limit"]) == (sum(sizes.values()), cache.DEFAULT_MIB << 20)
    assert path.name in run("cache", "info").stdout
    cleared = run_json("cache", "clear")
    assert (cleared["removed"], cleared["bytes"]) == (len(sizes), found["bytes"])
    assert not path.exists()


def test_build_for_this_machine_measures_a_reasoned_profile(tmp_path):
    assert "the profile was measured\n" in run("where", "build").stdout
    for cmd in ("where build --no-profile", f"where build -o {tmp_path}/w.so", "onnxruntime build"):
        assert "was measured" not in run(*cmd.split()).stdout


@mark.parametrize("damage", the_others_slow([False, True], [False]))
def test_a_file_for_this_cpu_is_a_copy_of_what_the_cache_has(damage, tmp_path, monkeypatch):
    kept = Path(run_json("where", "build")["path"])
    content = kept.read_bytes()
    built = []
    build_family = building.build_family
    monkeypatch.setattr(building, "build_family", lambda *of: built.append(of) or build_family(*of))
    if damage:
        kept.write_bytes(content[:-100])
    path = tmp_path / "where.so"
    run_json("where", "build", "-o", path)
    assert len(built) == damage
    assert run_json("where", "build")["path"] == str(kept)
    assert len(built) == 2 * damage
    assert path.read_bytes() == kept.read_bytes() == content
    assert path.with_suffix(".h").exists() and path.with_suffix(".json").exists()


@mark.parametrize("words", [("where",), ("onnxruntime",)])
def test_path_that_takes_no_file_is_refused_before_the_build(words, monkeypatch):
    monkeypatch.setattr(building, "build_family", lambda *_, **__: fail("it was built"))
    for path in ("/proc/x.so", "/proc/folder/x.so"):
        said = refused(*words, "build", "-o", path, code=1)
        assert f"{path} cannot be written: No such file or directory" in said


def test_info_shows_the_newest_entries_first(tmp_path):
    folder = tmp_path / "cache"
    names = [cache.name_of(f"where_w{i}", f"{i:024x}") for i in range(25)]
    for i, name in enumerate(names):
        cache.keep(name, b"x" * 1024)
        os.utime(folder / name, (0, i))
    assert len({each["used"] for each in run_json("cache", "info")["entries"]}) >= len(names)
    shown = run("cache", "info").stdout
    assert 0 < shown.index(names[24]) < shown.index(names[3])


def test_each_step_is_a_line_where_stderr_is_no_terminal(tmp_path, monkeypatch):
    def build(_path, _target, step):
        for done in (0, 0, 1, 2, 2):  # it is told twice a second
            step(done, 2)
        (tmp_path / "where.so").touch()
        return tmp_path / "where.so"

    monkeypatch.setattr("te_select.selecting.kernels.building.build", build)
    words = ("where", "build", "-o", tmp_path / "where.so")
    lines = [f"building: {done} of 2 steps" for done in range(3)]
    assert run(*words).stderr.splitlines() == lines
    assert run_json(*words)["kernels"] == KERNELS


@on_x86_64
def test_a_library_of_several_levels_is_written_and_inspected(tmp_path):
    path = tmp_path / "where.so"
    done = run("where", "build", "--target", ",".join(LEVELS), "-o", path)
    assert done.exit_code == 0, done.stderr
    assert "x86-64-v2,x86-64-v3" in done.stdout
    document = run_json("inspect", path)
    assert list(document["target"]["levels"]) == LEVELS
    assert len(document["kernels"]) == KERNELS
    assert stored.read(path).manifest.stages == tuple(stage.name for stage in stages())
    assert all(list(kernel["levels"]) == LEVELS for kernel in document["kernels"])
    # Nothing to ship goes into the cache; the host half does if this process had not made it.
    kept = [entry.name for entry in (tmp_path / "cache").glob("*")]
    assert all(name.startswith("te_select-host_half-") for name in kept), kept
    assert "te_select_where_call_on(" in (tmp_path / "where.h").read_text()
    opened = ctypes.CDLL(str(path))
    assert all(getattr(opened, name) for name in link.FAMILY.exports)


@mark.parametrize("verb", ["where", "onnxruntime"])
def test_another_target_needs_a_path(verb):
    assert "needs -o" in refused(verb, "build", "--target", "x86-64-v3")


def test_a_size_that_is_no_number_is_one_line(monkeypatch):
    monkeypatch.setenv(cache.SIZE, "1GB")
    assert "expected a whole number of MiB" in refused("cache", "info", code=1)
