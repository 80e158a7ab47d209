"""An export for several instruction sets: a library for each, and how programs find theirs."""

import platform
from pathlib import Path

import numpy as np
from pytest import fixture, mark, raises, skip

import te_select
from te_select import ArtifactError, TargetError, ToolchainError
from te_select.backends import cross_compiler
from te_select.backends.targets import resolve, resolve_each
from te_select.runtime.artifact import stored
from te_select.schedules.cpu.isa import ISAS
from tests.support import flat, flat_and_scalar
from tests.support.cli import refused, run, run_json

LEVELS = "x86-64-v2,x86-64-v3"
TARGET = f"{LEVELS},aarch64"
ENDINGS = (".h", ".json", ".so")
WORKLOADS = [flat_and_scalar(9), flat("n", "int16")]
WORDS = ["compile", "--cond", "9", "--then", "9", "--else", "", "--target", TARGET]
MACHINE = ISAS["x86-64"].machine
pytestmark = mark.skipif(platform.machine() != MACHINE, reason="needs an x86-64 machine")


@fixture(scope="module")
def path(tmp_path_factory):
    """What an export for two instruction sets returns."""
    try:
        folder = tmp_path_factory.mktemp("several")
        return te_select.export(WORKLOADS, folder / "mask.so", TARGET, tuning_logs=False)
    except ToolchainError as error:
        skip(str(error))


def names(folder):
    return sorted(each.name for each in folder.iterdir())


@mark.parametrize(
    "target, parts",
    [
        (TARGET, {"x86_64": LEVELS, "aarch64": "aarch64"}),
        ("riscv64:rva23, aarch64 ,riscv64", {"riscv64": "riscv64,riscv64:rva23", "aarch64": None}),
        ("aarch64:neoverse-n1,znver5", {"aarch64": "aarch64:neoverse-n1", "x86_64": "znver5"}),
        ("x86-64-v3,x86-64-v2", {"x86_64": LEVELS}),
        ("cuda:sm_80,sm_90", {"": "cuda:sm_80,sm_90"}),
        ({"kind": "llvm", "mcpu": "znver5"}, {"": "znver5"}),
    ],
)
def test_list_is_parted_by_instruction_set(target, parts):
    found = {machine: each.name for machine, each in resolve_each(target).items()}
    assert found == {machine: part or machine for machine, part in parts.items()}


@fixture
def on_riscv64(monkeypatch):
    """A function, after which this machine is another one until the end of the test."""
    return lambda: monkeypatch.setattr("platform.machine", lambda: "riscv64")


def test_native_in_a_list_is_of_this_machine(on_riscv64):
    assert list(resolve_each("aarch64,native")) == ["aarch64", MACHINE]
    on_riscv64()
    assert list(resolve_each("aarch64,native")) == ["aarch64", "riscv64"]


@mark.parametrize(
    "target, said",
    [
        ("x86-64-v2,aarch64,nope", "holds 'nope', which is no level"),
        ("aarch64,aarch64:neoverse-n1,x86-64", "holds 'aarch64:neoverse-n1', which is no level"),
        ("aarch64,riscv64,aarch64", "holds 'aarch64' twice"),
        ("x86-64-v2,aarch64,cuda:sm_90", "holds 'cuda:sm_90', which is no level"),
        ('riscv64,{"tag":"arm/rk3399"}', "which is no level or CPU"),
        ("aarch64,,riscv64", "holds '', which is no level or CPU"),
    ],
)
def test_wrong_name_in_a_list_is_one_clear_line(target, said, tmp_path):
    with raises(TargetError) as caught:
        te_select.export(WORKLOADS, tmp_path / "mask.so", target)
    assert said in str(caught.value) and names(tmp_path) == []


def test_one_library_for_two_instruction_sets_is_refused():
    for refuse in (resolve, lambda target: te_select.compile(WORKLOADS[0], target)):
        with raises(TargetError, match=r"one instruction set \(te_select.export and te-s"):
            refuse(TARGET)
    said = refused("inspect", *WORDS[1:])
    assert "te_select.export and te-select compile write one for each" in said


def test_library_of_each_machine_has_its_files_beside_it(path):
    assert path.name == "mask.so" and not path.exists()
    machines = ("aarch64", MACHINE)
    assert names(path.parent) == [f"mask.{each}{end}" for each in machines for end in ENDINGS]
    for machine, target in zip(machines, ("aarch64", LEVELS), strict=True):
        manifest = stored.read(path.with_name(f"mask.{machine}.so")).manifest
        assert (manifest.target["architecture"], manifest.target["name"]) == (machine, target)
    declared = {each.read_text().partition("#ifndef")[2] for each in path.parent.glob("*.h")}
    assert len(declared) == 1


def test_load_takes_the_library_of_this_machine(path):
    library = te_select.load(path)
    assert library.path.name == f"mask.{MACHINE}.so"
    kernel = library[WORKLOADS[0].name]
    assert kernel.levels == tuple(LEVELS.split(","))
    cond = np.arange(9) % 2 == 0
    then = np.arange(9, dtype="f4")
    assert (kernel(cond, then, np.float32(-1)) == np.where(cond, then, np.float32(-1))).all()


def test_library_of_that_very_name_comes_first(path, tmp_path):
    own = path.with_name(f"mask.{MACHINE}.so")
    for name in ("mask.so", own.name):
        (tmp_path / name).write_bytes(own.read_bytes())
        assert te_select.load(tmp_path / "mask.so").path.name == "mask.so"


def test_libraries_of_other_machines_are_named(path, on_riscv64):
    on_riscv64()
    said = f"mask.riscv64.so for this machine; there are only mask.aarch64.so, mask.{MACHINE}.so"
    with raises(ArtifactError, match=said):
        te_select.load(path)
    assert said in refused("verify", path)


def test_file_that_load_would_take_is_not_passed_over(path, tmp_path):
    (tmp_path / "mask.so").write_text("mine")
    with raises(ArtifactError, match=r"mask.so is there, so te_select.load would"):
        te_select.export(WORKLOADS, tmp_path / "mask.so", TARGET)
    assert names(tmp_path) == ["mask.so"]


def test_failed_build_leaves_the_files_that_were_there(path, tmp_path, monkeypatch):
    for each in path.parent.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    before = {each.name: each.stat().st_ino for each in tmp_path.iterdir()}
    which = cross_compiler.shutil.which
    found = lambda name: which(name) if name in ("cc", "gcc") else None  # noqa: E731
    monkeypatch.setattr("te_select.backends.cross_compiler.shutil.which", found)
    monkeypatch.setattr(cross_compiler.importlib.util, "find_spec", lambda _name: None)
    cross_compiler._find.cache_clear()
    try:
        with raises(ToolchainError, match="aarch64-linux-gnu-gcc"):
            te_select.export(WORKLOADS[:1], tmp_path / "mask.so", TARGET)
    finally:
        cross_compiler._find.cache_clear()
    assert {each.name: each.stat().st_ino for each in tmp_path.iterdir()} == before


def test_file_of_somebody_else_is_refused_before_the_build(tmp_path, monkeypatch):
    (tmp_path / "mask.aarch64.json").write_text("{}")
    monkeypatch.setattr("te_select.compiler.export.build_scheduled", None)
    with raises(ArtifactError, match=r"mask.aarch64.json is no manifest of te-select"):
        te_select.export(WORKLOADS, tmp_path / "mask.so", TARGET)
    assert names(tmp_path) == ["mask.aarch64.json"]


def test_all_libraries_are_written_at_once(path, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "te_select.base.atomic.replace_all", lambda files: calls.append(sorted(files))
    )
    found = {tmp_path / each.name: stored.read(each) for each in path.parent.glob("*.so")}
    stored.write_all(found)
    assert calls == [sorted(tmp_path / name for name in names(path.parent))]


def test_shell_tells_of_each_library(path, tmp_path):
    document = run_json(*WORDS, "-o", tmp_path / "mask.so", "--static")
    assert document["path"] == str(tmp_path / "mask.so")
    found = [(Path(each["path"]).name, each["target"]["name"]) for each in document["libraries"]]
    assert found == [(f"mask.{MACHINE}.so", LEVELS), ("mask.aarch64.so", "aarch64")]
    assert [name for name in names(tmp_path) if name.endswith(".a")] == [
        "mask.aarch64.a",
        f"mask.{MACHINE}.a",
    ]
    shown = run(*WORDS, "-o", tmp_path / "mask.so").stdout
    assert all(f"{tmp_path}/{name}\n" in shown for name, _ in found)
    assert run("verify", tmp_path / "mask.so").exit_code == 0
    inspected = run_json("inspect", tmp_path / "mask.so")
    assert inspected["path"] == str(tmp_path / f"mask.{MACHINE}.so")
