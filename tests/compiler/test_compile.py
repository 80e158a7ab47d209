"""compile through the cache: what is found, what is built anew, and what is never kept."""

import json
import os
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from pytest import fixture, mark, raises, warns

import te_select
from te_select import ArgumentError, ToolchainError, TuningError
from te_select.backends import build_key
from te_select.base.cache import FOLDER, SIZE, entries
from te_select.compiler import build, compile
from te_select.records import folders
from tests.support import alike, flat_and_scalar, masked_rows, python
from tests.support.libraries import edit_fields
from tests.support.where_calls import path_of_python

W = masked_rows(4, 8)
COND = np.array([[1], [0], [0], [1]], bool)
THEN = np.arange(32, dtype="f4").reshape(4, 8)
EXPECTED = np.where(COND, THEN, np.float32(5))
AGAIN = """
import json, sys
import numpy as np
import te_select
kernel = te_select.compile(te_select.Workload((4, 1), (4, 8), ()))
has_tvm = "tvm" in sys.modules
cond = np.array([[1], [0], [0], [1]], bool)
then = np.arange(32, dtype="f4").reshape(4, 8)
out = kernel(cond, then, np.float32(5)).tolist()
lines = len(kernel.source("asm").splitlines())
path = kernel.export(sys.argv[1])
same = te_select.load(path)(cond, then, np.float32(5)).tolist() == out
print(json.dumps([has_tvm, out, str(kernel.path), kernel.origin, lines, same]))
"""
RENAMES_SEEN_LATE = """
import os, sys, threading, te_select
rename = os.replace
def late(source, target):
    hidden = f"{target}.{os.getpid()}"
    rename(source, hidden)
    threading.Timer(1, rename, (hidden, target)).start()
os.replace = late
assert te_select.compile(te_select.Workload((), (), (), "int64"))(True, 5, 6) == 5
print("tvm" in sys.modules)
"""
NO_HOME = """
import os, pwd
def unknown(uid): raise KeyError(uid)
pwd.getpwuid = unknown
import te_select
workload = te_select.Workload((4,), (4,), (4,))
te_select.compile(workload)
print(te_select.compile(workload).path)
"""


@fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv(FOLDER, str(path))
    monkeypatch.delenv(SIZE, raising=False)
    monkeypatch.setattr("te_select.errors.notices._warned_of", set())
    return path


@fixture
def builds(monkeypatch):
    """What the compiler was asked for."""
    asked = []
    kernel = build.kernel

    def noted(*args, **options):
        asked.append(args)
        return kernel(*args, **options)

    monkeypatch.setattr("te_select.compiler.build.kernel", noted)
    return asked


def selects(kernel):
    return kernel(COND, THEN, np.float32(5)).tobytes() == EXPECTED.tobytes()


def test_entry_that_others_see_late_is_built_again(folder):
    """As on NFS, where a rename takes a while to be seen."""
    with ThreadPoolExecutor(2) as at_once:
        built = [*at_once.map(python, [RENAMES_SEEN_LATE] * 2)]
    assert [*built, python(RENAMES_SEEN_LATE)] == ["True\n", "True\n", "False\n"]
    assert len([*folder.iterdir()]) == len(entries()) == 2  # the kernel and the host half


def test_another_process_finds_it_and_needs_no_tvm(folder, tmp_path):
    assert selects(te_select.compile(W))
    own = f"te_select-{W.name}_"  # beside it may lie the host half
    (entry,) = (each for each in entries() if each.name.startswith(own))
    said = python(AGAIN, tmp_path / "exported.so", PYTHONPATH=path_of_python())
    has_tvm, out, path, origin, lines, same = json.loads(said)
    assert (has_tvm, out, same) == (False, EXPECTED.tolist(), True)
    assert (path, origin) == (str(entry), te_select.compile(W).origin)
    assert lines > 20


def test_it_is_the_kernel_that_the_compiler_makes(builds):
    made, found = te_select.compile(W), te_select.compile(W)
    assert len(builds) == 1
    for name in ("workload", "target", "level", "levels", "config", "origin", "kind"):
        assert getattr(found, name) == getattr(made, name)
    assert selects(made) and selects(found)


def entry(workload=W, target="native", tuning_logs=None, config=None):
    name = compile._entry(workload, target, tuning_logs, config)
    assert name is not None
    return name


@fixture
def logs(tmp_path):
    place = tmp_path / "logs" / "some-cpu"
    place.mkdir(parents=True)
    (place / "sessions.json").write_text("[1]\n")
    return place.parent


def test_a_cached_kernel_outlives_the_compiler(monkeypatch, tmp_path):
    for target in ("native", "x86-64-v2"):
        te_select.compile(W, target)
    there = entries().keys()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    found = te_select.compile(W)
    assert found.path in there and selects(found)
    assert te_select.compile(W, "x86-64-v2").target == "x86-64-v2"
    for other in ({"config": {"piece": 64}}, {"tuning_logs": False}, {"target": "x86-64"}):
        with raises(ToolchainError):
            te_select.compile(W, **other)
    assert entries().keys() == there


def test_entry_of_another_cpu_is_passed_over_and_stays(monkeypatch, tmp_path):
    """It serves the machine that can run it, as in a home that several have."""
    te_select.compile(W)
    (made,) = (each for each in entries() if f"-{W.name}_" in each.name)
    damaged, newer, older = (made.with_name(f"{made.stem[:-24]}{c * 24}.so") for c in "abc")
    made.rename(older)
    shutil.copy(older, newer)
    edit_fields(newer, lambda m: m["target"].update(cpu_features=["cheese"]))
    damaged.write_bytes(older.read_bytes()[:-1])
    for age, path in enumerate((damaged, newer, older)):
        os.utime(path, (9e8 - age, 9e8 - age))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    found = te_select.compile(W)
    assert (found.path, selects(found)) == (older, True)
    assert newer.exists() and damaged.exists()
    older.unlink()
    with raises(ToolchainError):
        te_select.compile(W)
    assert newer.exists() and damaged.exists()


def test_everything_that_is_asked_for_is_in_the_key(logs):
    found = [
        entry(),
        entry(masked_rows(4, 8, "int32")),
        entry(te_select.Workload((4, 1), (4, 8), (), auto_broadcast="multidirectional")),
        entry(target="x86-64"),
        entry(target={"kind": "llvm", "mcpu": "x86-64"}),
        entry(tuning_logs=False),
        entry(tuning_logs=logs),
        entry(config={"piece": 4096}),
        entry(config={"piece": 8192}),
    ]
    assert len(set(found)) == len(found)
    assert [entry(), entry(tuning_logs=str(logs))] == [found[0], found[6]]


def test_records_of_every_folder_and_target_are_in_the_key(monkeypatch, logs, tmp_path):
    found = [entry(), entry(tuning_logs=logs)]
    (logs / "some-cpu" / "sessions.json").write_text("[2]\n")
    found.append(entry(tuning_logs=logs))
    (logs / "some-cpu").rename(logs / "other-cpu")
    found.append(entry(tuning_logs=logs))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    shutil.copytree(logs, folders.user_folder())
    found.append(entry())
    monkeypatch.setattr("te_select.records.folders.SHIPPED", logs)
    found.append(entry())
    assert len(set(found)) == len(found)


def test_what_builds_is_in_the_key(monkeypatch, tmp_path):
    def fresh():
        build_key._of_what_builds.cache_clear()
        build_key.of_sources.cache_clear()
        return entry()

    found = [fresh()]
    compiler_program = tmp_path / "mycc"
    compiler_program.write_text("#!/bin/sh\nexec cc $@\n")
    compiler_program.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler_program))
    found.append(fresh())
    monkeypatch.setenv("CC", f"{compiler_program} -O1")
    found.append(fresh())
    monkeypatch.setattr(build_key.features, "features", lambda: frozenset({"sse2"}))
    found.append(fresh())
    monkeypatch.setattr("te_select.backends.build_key.features.cpu_name", lambda: "another")
    found.append(fresh())
    for package in build_key._PACKAGES:
        versions = build_key.version.installed
        monkeypatch.setattr(
            build_key.version, "installed", lambda p, q=package, v=versions: "9" if p == q else v(p)
        )
        found.append(fresh())
    sources = build_key._sources()
    names = {path.name for path in sources}
    assert {
        "compile.py",
        "pool.c",
        "where_abi.h",
        "lookup.py",
        "building.py",
        "kinds.py",
        "broadcast.py",
        "nvcc.py",
        "span.cuh",
    } <= names
    assert any("schedules" in path.parts for path in sources)
    edited = tmp_path / sources[0].name
    edited.write_text("edited")
    anew = [edited, *sources[1:]]
    monkeypatch.setattr("te_select.backends.build_key._sources", lambda: anew)
    found.append(fresh())
    build_key._of_what_builds.cache_clear()
    build_key.of_sources.cache_clear()
    assert len(set(found)) == len(found)


@mark.parametrize("damage", ["cut", "flipped", "empty", "another"])
def test_a_damaged_entry_is_built_again(builds, folder, damage):
    te_select.compile(W)
    (found,) = (each for each in entries() if f"-{W.name}_" in each.name)
    image = found.read_bytes()
    half = len(image) // 2
    other = flat_and_scalar(3)
    found.write_bytes(
        {
            "cut": image[:half],
            "flipped": image[:half] + bytes([image[half] ^ 1]) + image[half + 1 :],
            "empty": b"",
            "another": te_select.compile(other).path.read_bytes(),
        }[damage]
    )
    builds.clear()
    assert selects(te_select.compile(W))
    assert len(builds) == 1
    assert found.read_bytes() == image
    assert te_select.compile(W).path == found


def test_records_that_come_during_a_build_are_seen_as_new(monkeypatch, logs):
    kernel = build.kernel

    def slow(workload, target, tuning_logs, **options):
        made = kernel(workload, target, False, **options)
        (logs / "some-cpu" / "sessions.json").write_text("[3]\n")
        return made

    monkeypatch.setattr("te_select.compiler.build.kernel", slow)
    te_select.compile(W, tuning_logs=logs)
    assert not [each for each in entries() if W.name in each.name]  # of its kernel


def test_errors_are_the_same_when_there_is_an_entry(tmp_path):
    te_select.compile(W, config={"piece": 4096})
    with raises(TuningError, match="is missing"):
        te_select.compile(W, tuning_logs=tmp_path / "none")
    with raises(ArgumentError, match="expected a mapping"):
        te_select.compile(W, config=[1])


def test_a_cache_that_cannot_be_written_is_one_warning(folder, builds):
    folder.write_text("a file")
    with warns(RuntimeWarning, match="cannot keep what it has built") as caught:
        assert selects(te_select.compile(W))
        assert selects(te_select.compile(W))
    assert len(caught) == 1 and len(builds) == 2


def test_a_workload_of_long_names_is_kept():
    dims = tuple(letter * 52 for letter in "abcdef")
    workload = alike(*dims)
    with warnings.catch_warnings(record=True) as caught:
        made = te_select.compile(workload, tuning_logs=False)
    assert (made.workload, caught) == (workload, [])
    assert [*entries()] == [te_select.compile(workload, tuning_logs=False).path]


def test_user_without_a_home_has_a_temporary_cache(tmp_path):
    """As with a user id that has no entry in the list of users, and no HOME."""
    unset = ("HOME", "XDG_CACHE_HOME", FOLDER)
    known = {name: value for name, value in os.environ.items() if name not in unset}
    said = python(NO_HOME, env=known, TMPDIR=tmp_path)
    assert said.startswith(f"{tmp_path}/te-select-{os.getuid()}/te-select/te_select-")
