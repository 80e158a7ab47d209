"""Linking, exporting and loading: whole files or clear errors."""

from platform import machine

from pytest import fixture, mark, raises

from te_select import ArtifactError, ToolchainError
from te_select.backends.cpu import link
from te_select.backends.programs import c_compiler
from te_select.runtime.artifact import embedded, stored
from te_select.runtime.call.cpu import features
from te_select.runtime.call.loading import load
from tests.support import flat, output
from tests.support.runtime_standin import ARGS, build, library_of, linked, manifest
from tests.support.runtime_standin import entry as entry_of

W = flat(8)
LEVELS = {"x86-64": ()}


@fixture
def built():
    return library_of(W)


@fixture
def copied(built, tmp_path):
    return stored.write(stored.read(built), tmp_path / "new" / "folder" / "mask.so")


def test_loaded_kernel_says_what_it_is(copied):
    k = load(copied)
    assert (k.workload, k.target, k.origin, k.path) == (W, "x86-64", "default", copied)
    assert dict(k.config) == {"lanes": 8}
    with raises(TypeError):
        k.config["lanes"] = 4
    assert (k(*ARGS) == ARGS[0]).all()


def test_only_tvm_ffi_functions_are_exported(built):
    symbols = output("nm", "-D", "--defined-only", built).split()[2::3]
    names = [
        W.name,
        f"{W.name}__bits",
        f"{W.name}__try",
        "te_select_level",
        "te_select_machine",
        "te_select_manifest",
        "te_select_plan",
        "te_select_run_serially",
    ]
    assert sorted(symbols) == [*(f"__tvm_ffi_{name}" for name in names), "te_select_pool_v7"]


def test_library_for_a_cpu_with_other_features_is_refused(tmp_path):
    present = next(x for x in sorted(features.features()) if not features.missing([x]))
    described = manifest([W], [present, "cheese"])
    path = build([W], tmp_path / "moon.so", described=described)
    with raises(ArtifactError, match="compiled for x86-64 and this CPU lacks cheese; comp"):
        load(path)


@mark.parametrize("path", [None, 5, b"x.so", "a\0.so", "\ud800.so", "a\udc80b.so"])
def test_what_is_no_path_is_refused(built, path):
    for call in (load, load(built).export):
        with raises(ArtifactError, match=r"is no path of text; expected one ending in \.so"):
            call(path)
    with raises(ArtifactError):
        stored.write(stored.read(built), path)


@fixture
def relinked(built, tmp_path):
    def link_again(entry):
        linked([built.with_suffix(".o")], entry, LEVELS, manifest([W]), tmp_path / "x.so")

    return link_again


def test_temporary_folder_that_is_missing(relinked, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nonexistent"))
    monkeypatch.setenv("CC", "cc -O1")  # nothing was compiled with this one
    with raises(ArtifactError, match=r"nonexistent does not take .*: No such file"):
        relinked({W: entry_of()})


def test_function_that_the_library_lacks(tmp_path):
    other = flat(9)
    path = build([W], tmp_path / "lacks.so", described=manifest([other]))
    with raises(ArtifactError, match=f"has no function {other.name}"):
        load(path)


def test_library_that_the_system_cannot_load(built, tmp_path):
    path = tmp_path / "text.so"
    library = bytearray(built.read_bytes())
    library[16] = 1  # an object file
    path.write_bytes(embedded.seal(bytes(library)))
    with raises(ArtifactError, match=r"text\.so cannot be loaded: .*export it again") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_missing_files_and_bad_paths(copied, tmp_path):
    with raises(ArtifactError, match=r"does not end in \.so"):
        load(tmp_path / "mask.json")
    with raises(ArtifactError, match="cannot be written"):
        load(copied).export(copied / "mask.so")
    copied.unlink()
    with raises(ArtifactError, match=r"mask\.so is missing"):
        load(copied)


def test_compiler_that_is_missing_or_fails(relinked, tmp_path, monkeypatch):
    entry = {W: [link.Version("no_such_symbol")]}
    with raises(ToolchainError, match="no_such_symbol") as caught:
        relinked(entry)
    assert "\n" not in str(caught.value)
    monkeypatch.setenv("CC", "echo")
    with raises(ToolchainError, match="echo wrote no file; set CC to a C compiler"):
        relinked(entry)
    monkeypatch.setenv("CC", "false")
    said = "false failed with exit code 1: it printed nothing; set CC to a C compiler that works"
    with raises(ToolchainError, match=said):
        relinked(entry)
    monkeypatch.setenv("CC", "echo other-linux-gnu")  # makes code for another machine
    assert c_compiler()[0] in {"cc", "gcc", "clang"}
    monkeypatch.setenv("CC", f"echo {machine()}-linux-gnu")
    assert c_compiler() == ("echo", f"{machine()}-linux-gnu")
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    with raises(ToolchainError, match="CC is 'no-such-compiler -O2', not a program"):
        c_compiler()
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises(ToolchainError, match=r"no C compiler is found .* set CC"):
        c_compiler()
    assert not list(tmp_path.iterdir())
