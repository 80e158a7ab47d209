"""CUDA kernels compiled for each arch, read from their machine code. Needs no GPU."""

import functools
import itertools
import re

from pytest import mark, raises, skip

from te_select import ToolchainError, Workload
from te_select.backends.cuda import nvcc, nvrtc
from te_select.backends.cuda.compilers import archs, compile_cuda, describe, find, is_arch
from te_select.backends.cuda.lowering import translation_unit
from te_select.operator.access import access_pattern
from te_select.schedules.cuda import schedule as cuda
from tests.support import alike, flat, flat_and_scalar, shapes
from tests.support.cuda_emulation import WIDTHS, lowered

pytestmark = mark.slow

ARCHS = ("sm_80", "sm_90", "sm_100")
ROWS, INNER = 4096, 1024
WIDE = re.compile(r"\b(LDG|STG)\.E[\w.]*\.128\b")
LOCAL = re.compile(r"\b(LDL|STL)\b")

compiler = mark.skipif(find() is None, reason="needs nvcc or NVRTC")


def patterns(dtype):
    """One workload of two loops for every way in which three operands can move along them."""
    shapes = [(1, 1), (ROWS, 1), (1, INNER), (ROWS, INNER)]
    found = {}
    for each in itertools.product(shapes, repeat=3):
        workload = Workload(*each, dtype, "multidirectional")
        pattern = access_pattern(workload)
        span = cuda.span_of(pattern, cuda.default_config(pattern, None))
        found[span.symbol] = workload
    return found


def listings(workloads, arch):
    """The machine code of each kernel, which uses no local memory."""
    functions = [lowered(workload, f"kernel_{k}") for k, workload in enumerate(workloads)]
    cubin = compile_cuda(translation_unit(functions), [arch]).cubins[arch]
    text = nvcc.disassemble(cubin)
    assert not LOCAL.search(text)
    parts = re.split(r"^\.text\.(kernel_\d+):", text, flags=re.MULTILINE)
    code = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {w: code[f.symbol] for f, w in zip(functions, workloads, strict=True)}


@compiler
@mark.parametrize(
    "dtype, arch",
    [*((dtype, "sm_90") for dtype in WIDTHS), ("float32", "sm_80"), ("float32", "sm_100")],
)
def test_every_pattern_compiles_to_wide_accesses_without_spills(dtype, arch):
    for workload, text in listings(list(patterns(dtype).values()), arch).items():
        accesses = {match.group(1) for match in WIDE.finditer(text)}
        assert "STG" in accesses or workload.out_shape == (1, 1), workload
        along = workload.broadcast
        whole = len(workload.out_shape) if workload.out_shape != (1, 1) else -1
        wide_sides = [
            axes
            for axes in (along.then_axes, along.else_axes)
            if sum(axis is not None for axis in axes) == whole
        ]
        assert not wide_sides or "LDG" in accesses, workload


@compiler
@mark.parametrize(
    "workload",
    [
        flat("n"),
        Workload(["a", 1], ["a", "b"], ["b"], "uint8"),
        Workload((1 << 20, 1), (1 << 20, 3), (3,), "bfloat16"),
        Workload(*shapes("100,1,63 100,77,1 77,63"), "uint8", "multidirectional"),
        Workload(["a", 1, "b"], ["a", 5, 1], [5, "b"], "complex128", "multidirectional"),
        flat_and_scalar(1 << 32, "uint8"),
        alike(dtype="float64"),
        Workload(*shapes("0,3 0,3 3")),
    ],
)
def test_named_odd_and_huge_sizes_use_no_local_memory(workload):
    for arch in ARCHS[1:]:
        listings([workload], arch)


@functools.cache
def small():
    return lowered(flat_and_scalar(64)).source


@mark.parametrize("which", [nvcc, nvrtc])
def test_either_compiler_makes_sass_per_arch_and_newest_ptx(which, monkeypatch):
    monkeypatch.setattr("te_select.backends.cuda.compilers.COMPILERS", (which,))
    try:
        binary = compile_cuda(small(), ["sm_90", "sm_80"])
    except ToolchainError as error:
        skip(str(error))
    assert list(binary.cubins) == ["sm_90", "sm_80"]
    assert all(cubin.startswith(b"\x7fELF") for cubin in binary.cubins.values())
    assert binary.cubins["sm_90"] != binary.cubins["sm_80"]
    assert ".target sm_90" in binary.ptx and ".entry kernel(" in binary.ptx
    assert compile_cuda(small(), ["sm_90", "sm_80"]) == binary


@compiler
def test_wrong_source_is_refused_with_the_compilers_words():
    with raises(ToolchainError, match="mistake"):
        compile_cuda("__global__ void kernel() { mistake(); }", ["sm_90"])


@compiler
def test_compiler_says_what_it_is_and_what_it_knows():
    assert re.match(r"(nvcc|NVRTC) \d+\.\d+", describe() or "")
    assert set(ARCHS) <= set(archs())
    assert is_arch("sm_90") and not is_arch("sm_9") and not is_arch("native")
