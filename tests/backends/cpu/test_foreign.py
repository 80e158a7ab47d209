"""Libraries for other instruction sets: cross-linked here, and called under an emulator."""

import functools
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from pytest import fixture, mark, raises, skip

import te_select
from te_select import ArtifactError, TargetError, ToolchainError, Workload
from te_select.backends.c_compiler import compiler_for
from te_select.backends.targets import resolve
from te_select.compiler import sources
from te_select.runtime.artifact.manifest import c_name
from te_select.schedules.cpu.isa import ISAS
from te_select.verify.verify import verify_kernel
from tests.support import alike, flat, flat_and_scalar, foreign, masked_rows, output, shapes
from tests.support.libraries import beside

pytestmark = mark.slow

RVV = "rv64,v=true,vlen={},vext_spec=v1.0"  # vectors of so many bits
NO_VECTORS = "rv64,v=false"
CPUS = [
    ("aarch64", "cortex-a53"),
    ("aarch64:neoverse-n1", "neoverse-n1"),
    ("riscv64", NO_VECTORS),
    *(("riscv64:rva23", RVV.format(length)) for length in (128, 256, 512)),
    *(("riscv64,riscv64:rva23", cpu) for cpu in (NO_VECTORS, RVV.format(256))),
]
"""Targets, and the CPUs of the emulator for which they are."""
TARGETS = ("aarch64", "riscv64", "riscv64:rva23")
DTYPES = ("bool", "int8", "float16", "bfloat16", "float32", "float64", "complex128")
N = 4099
WORKLOADS = [
    *(flat(N, dtype) for dtype in DTYPES),
    *(flat_and_scalar(n) for n in (0, 1, 3, 7, 31, 63, 64, 65, 255, 70001)),
    *(Workload((999, 1), (999, n), (999, n)) for n in (2, 3, 5, 8, 48, 63, 700)),
    *(Workload((99, 1), (99, n), (n,), "uint8") for n in (3, 100)),
    Workload((1, N), (16, N), ()),
    Workload(*shapes("1,300 200,1 200,300"), "float16"),
    Workload((), (N,), (N,)),
    alike(dtype="int16"),
    flat("n", "int16"),
    Workload(*shapes("r,1 r,n r,n")),
    *(Workload(("r", 1), ("r", n), (n,), "uint8") for n in (3, 5, 17, 63)),
    Workload(*shapes("8,1,1,33 8,12,33,33 ()")),
]


def compiled_for(target, path, workloads=WORKLOADS, **how):
    """A library; a skip if this machine cannot link it."""
    try:
        return te_select.export(workloads, path, target, tuning_logs=False, **how)
    except ToolchainError as error:
        skip(str(error))


@fixture(scope="module")
def library(tmp_path_factory):
    """Compiles for a target, once."""
    folder = tmp_path_factory.mktemp("foreign")
    return functools.cache(lambda target: compiled_for(target, folder / f"{target}.so"))


def emulator(target, cpu):
    """The command that runs programs for a target on a CPU; a skip if there is none."""
    isa = isa_of(target)
    command = foreign.emulator(isa)
    if command is None:
        skip(f"no emulator of {isa} is installed")
    return *command, "-cpu", cpu


def isa_of(target):
    return target.partition(",")[0].partition(":")[0]


@fixture(scope="module", params=CPUS, ids=str)
def host(request, library):
    """The emulator, the program that calls the library, and that."""
    target, cpu = request.param
    path = library(target)
    return *emulator(target, cpu), foreign.build_host(isa_of(target), path.parent), path


FORCED = "skip=2,bytes_per_thread=1024"
"""The machine does not decide. No CPU but x86-64 has streams."""


@mark.parametrize("threads, profile", [("1", ""), ("3", ""), ("2", FORCED)])
def test_every_pattern_and_width_computes_what_numpy_does(host, threads, profile):
    options = {"TE_SELECT_NUM_THREADS": threads, "TE_SELECT_PROFILE": profile}
    with foreign.Host(*host, **options) as process:
        results = [r for kernel in process.kernels() for r in verify_kernel(kernel)]
    assert {result.kernel for result in results} == {workload.name for workload in WORKLOADS}
    assert [(r.kernel, r.check, r.message) for r in results if not r.passed] == []


C_CALLER = """
#include <stdio.h>
#include "mask.h"
int main(void) {
  uint8_t cond[3] = {1, 0, 5};
  int16_t then[6] = {1, 2, 3, 4, 5, 6}, e = -1, out[6];
  if (NAME(cond, then, &e, out, 2, 3)) return 1;
  for (int i = 0; i < 6; ++i) printf("%d ", out[i]);
  return NAME(cond, then, &e, then + 1, 2, 3) != TE_SELECT_INVALID_ARGUMENT;
}
"""


@mark.parametrize("target", TARGETS)
@mark.parametrize("ending", [".so", ".a"])
def test_c_program_calls_a_library_by_its_header(tmp_path, target, ending):
    command = emulator(target, dict(CPUS)[target])
    workload = masked_rows("r", "n", "int16")
    compiled_for(target, tmp_path / "mask.so", [workload], static=True)
    (tmp_path / "main.c").write_text(C_CALLER.replace("NAME", c_name(workload)))
    compiler = compiler_for(ISAS[isa_of(target)].triple)
    library = (tmp_path / "mask").with_suffix(ending)
    options = [library, f"-Wl,-rpath,{tmp_path}", "-pthread", "-ldl", "-o", tmp_path / "main"]
    subprocess.run([*compiler, "-Wall", "-Werror", tmp_path / "main.c", *options], check=True)
    assert output(*command, tmp_path / "main") == "1 2 -1 -1 5 6 "


@mark.parametrize("target", TARGETS)
def test_library_needs_only_the_c_library(library, target):
    listed = output("readelf", "-dW", library(target))
    needed = re.findall(r"NEEDED.*\[(\S+)\]", listed)
    own = {"libc.so.6", "libpthread.so.0", "libdl.so.2"}  # older C libraries have three files
    assert {name for name in needed if not name.startswith("ld-linux-")} <= own


@mark.parametrize("target", TARGETS)
def test_loading_it_here_is_one_clear_line(library, target):
    path = library(target)
    with raises(ArtifactError) as caught:
        te_select.load(path)
    machine = isa_of(target)
    said = f"was compiled for {target} and this CPU lacks the {machine} instruction set"
    assert said in str(caught.value) and "\n" not in str(caught.value)
    with raises(TargetError, match=f"needs the {machine} instruction set"):
        te_select.compile(WORKLOADS[0], target)
    manifest = beside(path)
    assert manifest["target"]["architecture"] == machine


INNERMOST = re.compile(r"(?:b|b\.\w+|cbz|cbnz|tbz|tbnz)\s.*?(\.LBB\w+)$")


def innermost_loops(assembly, branch=INNERMOST):
    """Instructions of each innermost loop of the kernels, without functions of TVM."""
    functions = re.split(r"\.type\s+(?=\S+,@function)", assembly)[1:]
    kernels = [text for text in functions if re.match(r"te_select_kernel|\.L__tvm", text)]
    lines = [line.strip() for line in "".join(kernels).splitlines()]
    labels = {line[:-1]: i for i, line in enumerate(lines) if re.fullmatch(r"\.LBB\w+:", line)}
    spans = []
    for i, line in enumerate(lines):
        match = branch.match(line)
        if match and labels.get(match[1], i) < i:
            spans.append((labels[match[1]], i))
    spans = [(a, b) for a, b in spans if "ret" not in lines[a:b]]  # the outer loop, cut in two
    inner = [s for s in spans if not any(s[0] <= a and b <= s[1] and (a, b) != s for a, b in spans)]
    return [[x for x in lines[a : b + 1] if x and x[0] != "."] for a, b in inner]


@mark.parametrize("target", ["aarch64", "aarch64:neoverse-n1", "aarch64:neoverse-v2"])
@mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@mark.parametrize("sides", [((1 << 20,), (1 << 20,)), ((1 << 20,), ())])
def test_inner_loops_are_neon_selects_of_four_vectors(target, dtype, sides):
    workload = Workload((1 << 20,), *sides, dtype)
    loops = innermost_loops(sources.source(workload, target, None, "asm"))
    selects = [sum(bool(re.match(r"(bit|bif|bsl)\s", x)) for x in loop) for loop in loops]
    looks = [any(re.match(r"u(max|min)v\s", x) for x in loop) for loop in loops]
    assert any(looks)  # one loop looks at cond first, one does not
    plain = (count for count, look in zip(selects, looks, strict=True) if not look)
    assert max(plain) >= 8  # at least two vectors of four registers are selected
    for loop in loops:
        assert any(re.search(r"\bq\d+", line) for line in loop), "a scalar loop"
        assert not any("[sp" in line for line in loop), "registers are put on the stack"
        assert not any(re.search(r"\bz\d+\.", line) for line in loop), "SVE"


@mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
def test_ziglang_links_where_no_other_compiler_is(tmp_path):
    """In a process whose PATH has no programs."""
    code = (
        "import sys, te_select; w = te_select.Workload((99,), (99,), ()); "
        "te_select.export([w], sys.argv[1], 'aarch64', False)"
    )
    path = tmp_path / "zig.so"
    environment = {"PATH": str(tmp_path), "HOME": str(Path.home())}
    subprocess.run([sys.executable, "-c", code, path], env=environment, check=True)
    assert resolve("aarch64").isa.machine in output("readelf", "-h", path).lower()
