"""Where the kernels come from: the cache, a build, or an older entry; and if there are none."""

import ctypes
import dataclasses
import gzip
import json
import platform
import shutil
import subprocess
import threading
import types
from os import mkfifo, utime
from textwrap import dedent

from pytest import fixture, mark, raises, skip

import te_select
from te_select import ArtifactError
from te_select.base import cache
from te_select.operator.family import STAGES, held
from te_select.operator.stages import stages
from te_select.runtime.artifact import stored
from te_select.selecting.kernels import building, library
from tests.support import ROOT, flat_and_scalar, loaded, python
from tests.support.libraries import edit_fields
from tests.support.where_calls import path_of_python

FROM_A_FILE = {"calls": 3, "tvm": False, "tvm_ffi": False, "warnings": []}
USE = """
    import sys, warnings
    import numpy as np
    import te_select
    {before}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c = np.arange(5000) % 3 == 0
        x = np.arange(5000, dtype="f4")
        for _ in range(3):
            assert (te_select.where(c, x, -1) == np.where(c, x, -1)).all()
    import json
    print(json.dumps({{"calls": te_select.where.stats().calls, "tvm": "tvm" in sys.modules,
          "tvm_ffi": "tvm_ffi" in sys.modules, "warnings": [str(w.message) for w in caught]}}))
"""
NO_BUILD = """
    from te_select.selecting.kernels import library
    from te_select.errors import ToolchainError
    def refuse(part):
        return library._used_last(part, ToolchainError("no C compiler is found"))
    library._build = refuse
"""


def use(folder, before="", **environment):
    code = dedent(USE).format(before=dedent(before))
    where = {"TE_SELECT_CACHE_DIR": str(folder), "PYTHONPATH": path_of_python()}
    return json.loads(python(code, **where | environment))


@fixture(scope="module")
def entry(family):
    return family / library.entry(library.WHOLE)


@fixture
def folder(tmp_path, entry):
    made = tmp_path / "cache"
    made.mkdir(mode=0o700)
    shutil.copy(entry, made)
    return made


def test_a_warm_cache_needs_no_tvm(family):
    assert use(family, NO_BUILD) == FROM_A_FILE


def test_all_kernels_come_before_those_of_a_part(monkeypatch):
    monkeypatch.setattr(library, "_from_entry", lambda name, _: name)
    assert library._from_cache("w4") == library.entry(library.WHOLE)


def test_entry_of_another_cpu_is_passed_over_and_stays(folder, entry, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, str(folder))
    names = [cache.name_of("where_all", digit * 24) for digit in "abc"]
    other, damaged, fits = (shutil.copy(entry, folder / name) for name in names)
    (folder / entry.name).unlink()
    edit_fields(other, lambda m: m["target"].update(cpu_features=["cheese"]))
    damaged.write_bytes(fits.read_bytes()[:-1])
    for age, path in enumerate((other, damaged, fits)):
        utime(path, (9e8 - age, 9e8 - age))
    why = ArtifactError("no compiler")
    assert library._used_last("w4", why) == fits.read_bytes()
    fits.unlink()
    with raises(ArtifactError, match="no compiler"):
        library._used_last("w4", why)
    assert other.exists() and damaged.exists()


def test_entry_that_the_extension_refuses_is_passed_over(folder, entry, monkeypatch):
    monkeypatch.setenv(cache.FOLDER, str(folder))
    older = shutil.copy(entry, folder / cache.name_of("where_all", "a" * 24))
    utime(older, (9e8, 9e8))
    installed = []

    def install(address):
        installed.append(address)
        if len(installed) == 1:
            raise ValueError("the kernels of where() have version 4")

    monkeypatch.setattr(library, "extension", types.SimpleNamespace(install=install))
    monkeypatch.setattr("te_select.selecting.kernels.library._first", None)
    monkeypatch.setattr("te_select.selecting.kernels.library._loaded", set())
    assert library._used_last("w4", ArtifactError("no compiler")) == older.read_bytes()
    assert len(installed) == 2 and "w4" in library._loaded
    with raises(ArtifactError, match="no compiler"):
        installed.clear()
        older.unlink()
        library._used_last("w4", ArtifactError("no compiler"))


def test_use_finds_the_library_of_this_machine(tmp_path, entry):
    shutil.copy(entry, tmp_path / f"where.{platform.machine()}.so")
    before = f"te_select.where.use({str(tmp_path / 'where.so')!r})"
    assert use(tmp_path / "none", f"{dedent(NO_BUILD)}\n{before}") == FROM_A_FILE


def test_without_any_kernel_numpy_does_it_with_one_warning(tmp_path):
    """What could not be built is not tried again."""
    once = """
        refuse, asked = library._build, []
        def refuse_once(part):
            assert part not in asked
            asked.append(part)
            return refuse(part)
        library._build = refuse_once
    """
    found = use(tmp_path / "none", dedent(NO_BUILD) + dedent(once))
    assert found["calls"] == 0
    (text,) = found["warnings"]
    assert "leaves the work to NumPy" in text and "no C compiler is found" in text


def test_a_damaged_entry_is_not_run(folder, entry):
    path = folder / entry.name
    image = path.read_bytes()
    middle = len(image) // 2
    path.write_bytes(image[:middle] + bytes([image[middle] ^ 1]) + image[middle + 1 :])
    found = use(folder, NO_BUILD)
    assert found["calls"] == 0 and len(found["warnings"]) == 1
    assert not path.exists()


def test_a_missing_entry_is_built_and_kept(tmp_path):
    folder = tmp_path / "cold"
    found = use(folder)
    assert found == {"calls": 3, "tvm": True, "tvm_ffi": True, "warnings": []}
    (path,) = folder.glob("te_select-where_*")
    assert path.name.startswith("te_select-where_w4-")
    assert not use(folder)["tvm"]


CONVERT = """
    import os, sys
    import numpy as np
    import te_select
    if sys.argv[1:]:
        te_select.where.use(sys.argv[1])
    c = np.arange(5000) % 3 == 0
    x = np.arange(5000, dtype="f4")
    def kept():
        return sorted(name.split("-")[1] for name in os.listdir(folder) if "where" in name)
    folder = os.environ["TE_SELECT_CACHE_DIR"]
    assert (te_select.where(c, x, -1) == np.where(c, x, -1)).all()
    before = kept()
    assert (te_select.where(c, x, c) == np.where(c, x, c)).all()
    stats = te_select.where.stats()
    print(stats.calls, dict(stats.left), before, kept(), "tvm" in sys.modules)
"""


@mark.slow
def test_conversions_are_built_by_the_first_call_that_converts(tmp_path):
    how = {"TE_SELECT_CACHE_DIR": str(tmp_path / "cold"), "PYTHONPATH": path_of_python()}
    both = ["where_stages", "where_w4"]
    assert python(CONVERT, **how) == f"2 {{}} ['where_w4'] {both} True\n"
    assert python(CONVERT, **how) == f"2 {{}} {both} {both} False\n"


def test_library_without_conversions_takes_them_from_the_cache(folder, tmp_path):
    path = tmp_path / "runs.so"
    path.write_bytes(building.build_family(["w4"], "native").image)
    how = {"TE_SELECT_CACHE_DIR": str(folder), "PYTHONPATH": path_of_python()}
    assert python(CONVERT, path, **how).startswith("2 {}")
    how |= {"TE_SELECT_BUILD": "never", "TE_SELECT_CACHE_DIR": str(tmp_path)}
    assert python(CONVERT, path, **how).startswith("1 {'building is forbidden': 1} [] []")


def test_manifest_names_the_conversions(entry):
    manifest = stored.read(entry).manifest
    names = tuple(stage.name for stage in stages())
    assert manifest.stages == names
    workloads = [record.workload for record in manifest.kernels]
    assert set(held(workloads, names)) - set(held(workloads, names[1:])) == {STAGES}


def test_a_setting_that_kernels_refuse(family):
    found = use(family, TE_SELECT_NUM_THREADS="many")
    assert found["calls"] == 0
    assert "TE_SELECT_NUM_THREADS" in found["warnings"][0]


def test_library_of_another_version_is_refused(folder, entry, monkeypatch):
    offered = ctypes.c_int64(99)  # the version comes first
    monkeypatch.setattr(library, "call_for_int", lambda *_: ctypes.addressof(offered))
    with raises(ArtifactError, match="version 99; expected 5 to 6: build them"):
        te_select.where.use(folder / entry.name)


def test_use_refuses_other_libraries(tmp_path):
    other = te_select.export([flat_and_scalar(4)], tmp_path / "other.so")
    with raises(ArtifactError, match="no kernels of where"):
        te_select.where.use(other)
    with raises(ArtifactError, match="is missing"):
        te_select.where.use(tmp_path / "missing.so")
    found = stored.read(other)
    target = {"name": "cuda", "kind": "cuda", "archs": ["sm_80"]}
    for_cuda = found.alone(dataclasses.replace(found.manifest, target=target)).image
    for data, said in (
        (for_cuda, "no kernels of where"),
        (found.image[:-1], "was changed or cut"),
    ):
        other.write_bytes(data)
        with raises(ArtifactError, match=said):
            te_select.where.use(other)


def put(folder, kernels):
    """A library and its seal, as release/runtime_wheel.py puts them into a wheel."""
    loaded(ROOT / "release/runtime_wheel.py").bring(kernels, folder)
    return folder / library.PREBUILT.name


@fixture
def wheel(tmp_path, family):
    """A library as in a wheel, and code that takes it and lets nothing be built."""
    path = put(tmp_path / "wheel", family / library.entry(library.WHOLE))
    before = """
        import pathlib
        from te_select.selecting.kernels import library
        library.PREBUILT = pathlib.Path({!r})
        sys.modules["te_select.compiler.family_library"] = None
    """
    return path, before.format(str(path))


@mark.parametrize("builds", ["", "never", "error"])
def test_library_of_the_wheel_serves(wheel, tmp_path, builds):
    assert use(tmp_path / "cache", wheel[1], TE_SELECT_BUILD=builds) == FROM_A_FILE


def test_what_is_in_the_cache_comes_before_the_wheel(wheel, folder):
    wheel[0].write_bytes(b"")  # it would be named
    assert use(folder, wheel[1]) == FROM_A_FILE


@mark.parametrize("command", ["strip", "strip -R .comment", "patchelf --set-rpath /usr/lib"])
def test_library_that_packagers_rewrite_runs_as_it_was_built(wheel, tmp_path, command):
    path, before = wheel
    words = command.split()
    if shutil.which(words[0]) is None:
        skip(f"no {words[0]}")
    built = path.read_bytes()
    subprocess.run([*words, path], check=True)
    assert path.read_bytes() != built or command == "strip"  # a library has no symbols to strip
    check = f"assert library._prebuilt([]) == open({str(tmp_path / 'built')!r}, 'rb').read()"
    (tmp_path / "built").write_bytes(built)
    before = dedent(before) + check
    assert use(tmp_path / "cache", before, TE_SELECT_BUILD="error") == FROM_A_FILE


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def of_seal(change):
    """The same change of what the seal holds."""
    return lambda data: gzip.compress(change(gzip.decompress(data)), 1)


SPOILT = {
    "code": (".so", flipped),
    "cut": (".so", lambda data: data[:5000]),
    "empty": (".so", lambda data: b""),
    "seal": (".seal", of_seal(flipped)),
    "cut seal": (".seal", lambda data: data[:5000]),
    "empty seal": (".seal", of_seal(lambda data: b"")),
    "endless seal": (".seal", lambda data: gzip.compress(bytes(200 << 20), 1)),
    "no seal": (".seal", None),
    "a seal alone": (".so", None),
    "a pipe": (".seal", mkfifo),
}


@mark.parametrize("how", SPOILT)
def test_damaged_library_of_the_wheel_is_named(wheel, tmp_path, how):
    path, before = wheel
    ending, spoil = SPOILT[how]
    spoilt = path.with_suffix(ending)
    data = spoilt.read_bytes()
    spoilt.unlink()
    if spoil is mkfifo:
        mkfifo(spoilt)
    elif spoil:
        spoilt.write_bytes(spoil(data))
    found = use(tmp_path / "cache", before)
    assert found["calls"] == 0
    (warning,) = found["warnings"]
    reason = "it or its seal is missing, unreadable, damaged or for another CPU"
    assert warning.startswith(f"{path} cannot be used, as {reason}: install its package again")


@mark.parametrize("has_other_kernels", [False, True])
def test_missing_compiler_is_named_where_nothing_is_built(wheel, tmp_path, has_other_kernels):
    path, before = wheel
    path.unlink()
    path.with_suffix(".seal").unlink()
    if has_other_kernels:
        other = te_select.export([flat_and_scalar(4)], tmp_path / "other.so")
        put(path.parent, other)
    (warning,) = use(tmp_path / "cache", before)["warnings"]
    assert "to build kernels needs te_select.compiler.family_library" in warning
    assert warning.endswith("; install the wheel of te-select by its path, or a clone of it")


def test_build_in_a_thread_leaves_the_size_of_other_stacks(monkeypatch):
    monkeypatch.setattr(library, "_build_here", lambda parts: "".join(parts).encode())
    before = threading.stack_size()
    built = []
    thread = threading.Thread(target=lambda: built.append(library._built("a part", ["w4"])))
    thread.start()
    thread.join()
    assert (built, threading.stack_size()) == ([b"w4"], before)
