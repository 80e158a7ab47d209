"""Libraries of several levels: the one that a CPU runs, and the message if it runs none."""

import itertools
import shutil
import subprocess
from json import dumps, loads

import numpy as np
import tvm_ffi
from pytest import fixture, mark, raises

import te_select
from te_select import ArgumentError, ArtifactError, TuningError, Workload, export, load
from te_select.backends.cpu import link
from te_select.backends.targets import resolve
from te_select.compiler import sources
from te_select.runtime.artifact import stored
from te_select.runtime.call import loading
from te_select.runtime.call.cpu import features
from te_select.runtime.call.cpu.kernel import CpuKernel
from te_select.schedules.cpu import isa
from tests.support import cli, ended, flat, masked_rows, script, text_of
from tests.support.machines import on_x86_64
from tests.support.runtime_standin import build, linked, manifest

pytestmark = on_x86_64
LEVELS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")
NAME = ",".join(LEVELS)
HERE = [name for name in LEVELS if not features.missing(resolve(name).cpu_features)]
EXAMPLE = masked_rows(4, 8)  # what examples/tvm_ffi/main.cc calls
WORKLOADS = [EXAMPLE, flat("n", "int8"), Workload((99, 1), (99, 5), (99, 5))]
EMULATOR = shutil.which("qemu-x86_64")


@fixture(scope="module")
def library(tmp_path_factory):
    return export(WORKLOADS, tmp_path_factory.mktemp("levels") / "lib.so", NAME)


def at_level(path, level):
    """What a process with this TE_SELECT_LEVEL prints about the kernels of a library."""
    code = (
        "import json, sys, te_select; k = te_select.load(sys.argv[1]); "
        "print(json.dumps({n: [v.level, v.config['vector_bytes']] for n, v in k.items()}))"
    )
    return script(code, path, TE_SELECT_LEVEL=level)


def test_verify_names_the_levels_that_it_could_check(library):
    said = f"--level 'x86-64-v5' is not in {library}; expected one of {', '.join(LEVELS)}"
    assert said in cli.refused("verify", library, "--level", "x86-64-v5")
    document = cli.run_json("verify", library, "--check", "random")
    assert document["passed"]
    assert (document["level"], document["levels"]) == (HERE[-1], list(LEVELS))


VECTOR_BYTES = {"x86-64-v2": 16, "x86-64-v3": 64, "x86-64-v4": 64}
NO_LEVELS = ("x86-64-v5", "x86-64", "x86-64-v33", "native", "v3\n", "é" * 99)


@mark.parametrize("forced", ["", *LEVELS, *NO_LEVELS])
def test_forced_level_runs_or_is_refused_as_the_manifest_says(library, forced, monkeypatch):
    """What is read of the manifest is what the library chooses as it is loaded."""
    monkeypatch.setenv("TE_SELECT_LEVEL", forced)
    target = stored.read(library).manifest.target
    done = at_level(library, forced)
    if forced in ("", *HERE):
        assert done.returncode == 0, done.stderr
        level = CpuKernel.level_here(target)
        assert level == (forced or HERE[-1])
        for seen in loads(done.stdout).values():
            assert seen == [level, VECTOR_BYTES[level]]
        return
    with raises((ArgumentError, ArtifactError), match="TE_SELECT_LEVEL is") as caught:
        CpuKernel.level_here(target)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "TE_SELECT_LEVEL is '" in last or forced in LEVELS
    assert "expected x86-64-v2 or x86-64-v3 or x86-64-v4" in last or forced in LEVELS
    if forced.startswith("x86"):
        assert str(caught.value).partition("lacks")[0] in last


def test_library_of_one_level_has_nothing_to_choose(tmp_path):
    path = export(WORKLOADS[1:], tmp_path / "one.so", HERE[0])
    done = at_level(path, "x86-64-v4")
    assert done.returncode == 0, done.stderr
    assert {seen[0] for seen in loads(done.stdout).values()} == {HERE[0]}


def test_compiled_kernel_runs_at_the_best_level_here():
    kernel = te_select.compile(EXAMPLE, f"{HERE[0]},x86-64")
    assert (kernel.target, kernel.level) == (f"x86-64,{HERE[0]}", HERE[0])


def test_source_is_that_of_the_level_that_is_asked_for(library):
    kernel = load(library)[WORKLOADS[2].name]
    assert "zmm" in kernel.source("asm", "x86-64-v4")
    assert "ymm" in kernel.source("asm", "x86-64-v3")
    assert "zmm" not in kernel.source("asm", "x86-64-v3")
    assert "ymm" not in kernel.source("asm", "x86-64-v2")
    assert kernel.source("asm") == kernel.source("asm", HERE[-1])
    with raises(ArgumentError, match="level 'x' is not in the library; expected x86-64-v2"):
        kernel.source("asm", "x")
    with raises(ArgumentError, match="has several levels; expected x86-64-v2 or x86-64-v3"):
        sources.source(EXAMPLE, NAME, None, "asm")


def test_inspect_shows_every_level(library):
    document = cli.run_json("inspect", library)
    assert document["level_here"] == HERE[-1]
    for kernel in document["kernels"]:
        assert list(kernel["levels"]) == list(document["target"]["levels"]) == list(LEVELS)
    shown = cli.run("inspect", library).stdout
    for level in LEVELS:
        assert f"\n      {level}\n" in shown
    of_level = ("inspect", library, "--kernel", WORKLOADS[2].name, "--source", "asm", "--level")
    assert "expected one of x86-64-v2, x86-64-v3" in cli.run(*of_level, "v3").stderr


def test_one_kernel_of_the_library_is_exported_with_every_level(library, tmp_path):
    kernel = load(library)[WORKLOADS[1].name]
    alone = load(kernel.export(tmp_path / "alone.so"))
    assert (alone.level, alone.levels, alone.config) == (kernel.level, LEVELS, kernel.config)


def test_levels_are_tuned_one_by_one(tmp_path):
    with raises(TuningError, match="tune them one by one: x86-64-v2, x86-64-v3"):
        te_select.tune(EXAMPLE, "x86-64-v2,x86-64-v3", tuning_logs=tmp_path)


@mark.parametrize(
    "change, text",
    [
        (lambda m: m["target"].update(levels=3), "levels is 3, expected a dict"),
        (lambda m: m["target"].update(levels={"x": []}), "expected two or more"),
        (lambda m: m["target"].update(levels={}), "has the levels"),
        (lambda m: m["kernels"][0].pop("levels"), "has the levels"),
        (lambda m: m["target"].pop("cpu_features"), "cpu_features is None, expected a list"),
        (lambda m: m["target"].update(cpu_features=[1]), "cpu_features is 1, expected a str"),
        (lambda m: m["target"]["levels"].update({"x86-64-v2": [3]}), "levels is 3, expected a str"),
    ],
)
def test_damaged_levels_are_explained(library, change, text):
    from te_select.runtime.artifact.manifest import parse

    found = stored.read(library)
    data = found.manifest.to_json(found.sha256)
    assert parse(dumps(data).encode(), "it")[0] == found.manifest
    change(data)
    with raises(ArtifactError, match=text):
        parse(dumps(data).encode(), "it")


def standin(folder, levels):
    """A library of C code that claims to be for these levels, and what to call it with."""
    workload = flat(4, "int32")
    first = build([workload], folder / "standin.so")
    objects = first.with_suffix(".o")
    entries = {workload: [link.Version("te_select_kernel_0")] * len(levels)}
    linked([objects], entries, dict(levels), manifest([workload]), folder / "levels.so")
    arguments = [np.ones(4, bool), np.ones(4, "i4"), np.zeros(4, "i4"), np.full(4, 7, "i4")]
    return folder / "levels.so", workload.name, arguments


def called(path, name, arguments):
    """What a copy of a library does, which looks at the machine anew: its level, or the error."""
    copy = path.with_name(f"{next(_copies)}.so")
    shutil.copy(path, copy)
    module = tvm_ffi.load_module(str(copy))
    arguments[3][...] = 7
    try:
        module.get_function(name)(*arguments)
    except Exception as error:
        assert (arguments[3] == 7).all()
        return f"{type(error).__name__}: {error}".partition("\n")[0]
    assert (arguments[3] == 1).all()
    return module.get_function("te_select_level")()


_copies = itertools.count()


def test_library_of_one_level_serves_whatever_is_asked_for(tmp_path, monkeypatch):
    given = standin(tmp_path, [("only", ())])
    for asked in (None, "", "only", "x86-64-v4", "none", "a" * 200):
        if asked is not None:
            monkeypatch.setenv("TE_SELECT_LEVEL", asked)
        assert called(*given) == 0, asked
        assert CpuKernel.level_here({"name": "only", "cpu_features": []}) == "only"


@mark.parametrize(
    "needs, asked, found",
    [
        (("", "", "cheese"), None, 1),
        (("", "", ""), "", 2),
        (("", "", ""), "low", 0),
        (("", "", "cheese"), "mid", 1),
        (("", "cheese", ""), None, 2),
        (("", "", "cheese"), "best", "TE_SELECT_LEVEL is best, and this CPU lacks cheese"),
        (
            ("ham", "cheese", "jam"),
            None,
            "the library was compiled for low, and this CPU lacks ham",
        ),
        (("ham", "cheese", "jam"), "mid", "TE_SELECT_LEVEL is mid, and this CPU lacks cheese"),
        (("", "", ""), "lo", "TE_SELECT_LEVEL is 'lo'; expected low or mid or best"),
        (("", "", ""), "lower", "TE_SELECT_LEVEL is 'lower'; expected low or mid or best"),
    ],
)
def test_level_is_the_one_asked_for_or_the_best(tmp_path, monkeypatch, needs, asked, found):
    pairs = zip(("low", "mid", "best"), needs, strict=True)
    given = standin(tmp_path, [(name, (need,) if need else ()) for name, need in pairs])
    if asked is not None:
        monkeypatch.setenv("TE_SELECT_LEVEL", asked)
    result = called(*given)
    assert result == found if isinstance(found, int) else found in result
    if isinstance(found, str):
        assert result.startswith("RuntimeError" if "lacks" in found else "ValueError")


def test_feature_left_out_of_a_manifest_is_no_sigill(tmp_path):
    """A manifest that asks for the feature would be refused when the library is loaded."""
    path, _, arguments = standin(tmp_path, [("moon", ("cheese",))])
    kernel = loading.load(path)  # the manifest asks for no feature
    with raises(RuntimeError, match="this CPU lacks cheese"):
        kernel(*arguments[:3])


def test_every_feature_a_target_may_ask_for_is_detected():
    source = text_of("te_select/runtime/c/cpu/cpu_features.c")
    asked = [name for each in isa.ISAS.values() for name in each.features.values()]
    assert len(asked) > 30
    assert [name for name in asked if f'"{name}"' not in source] == []


def emulated(cpu, *command):
    done = ended(EMULATOR, "-cpu", cpu, *command)
    # qemu prints the features of a CPU that it cannot emulate, and runs without them.
    errors = [line for line in done.stderr.splitlines() if "TCG doesn't support" not in line]
    return done.returncode, done.stdout, "\n".join(errors)


C_CALLER = """
#include <stdio.h>
#include "lib.h"
int main(void) {
  uint8_t cond[4] = {1, 0, 0, 1};
  float then[32] = {0}, e = 1, out[32];
  te_select_status status = te_select_float32_numpy_c4x1_t4x8_e(cond, then, &e, out);
  printf("%d %s\\n", status, te_select_error());
  return 0;
}
"""


@mark.skipif(EMULATOR is None, reason="qemu-x86_64 is not installed")
@mark.parametrize("ending", [".so", ".a"])
def test_c_caller_on_an_old_cpu_gets_a_status_and_a_message(tmp_path, ending):
    export([EXAMPLE], tmp_path / "lib.so", "x86-64-v3", static=True)
    (tmp_path / "main").write_text(C_CALLER)
    library = (tmp_path / "lib").with_suffix(ending)
    options = ["-xnone", str(library), f"-Wl,-rpath,{tmp_path}", "-pthread", "-ldl"]
    words = ["cc", "-xc", str(tmp_path / "main"), *options, "-o", str(tmp_path / "program")]
    subprocess.run(words, check=True)
    status, out, errors = emulated("Nehalem", tmp_path / "program")
    said = f"2 {EXAMPLE.name}: the library was compiled for x86-64-v3, and this CPU lacks "
    assert status == 0 and out.startswith(said), errors
    assert emulated("Haswell", tmp_path / "program")[:2] == (0, "0 \n")
