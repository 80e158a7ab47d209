"""Faults of one expression, planted in kernels: `verify` finds each of them."""

import ctypes

from pytest import fixture, mark

import te_select
from te_select import Workload
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import schedule as cpu
from te_select.verify.cuda import OnDevice
from te_select.verify.verify import verify_kernel
from tests.support import cuda_standin, flat, flat_and_scalar, masked_rows, shapes
from tests.support.cuda_emulation import Emulated, lowered
from tests.support.oracle.doors_of_cuda import OnCuda
from tests.support.planted import plant
from tests.support.tir_functions import SPAN_PARAMETERS, changed, compiled, span_function

ON_CUDA = [
    flat(1),
    flat(2051),  # all move
    flat_and_scalar(1043, "uint8"),
    Workload(*shapes("3,1,64 3,5,64 64")),  # a mask over heads
    Workload(*shapes("67,1 67,32 32"), "int16"),  # one cond per row
    Workload(*shapes("301,1 301,3 3")),  # short rows
    masked_rows(9, 77, "complex128"),
    Workload((), (77,), (), "complex128"),
    Workload(*shapes("n,1 n,m m")),
]
CUDA_FAULTS = [
    "threadIdx.x < {rest => rest + 1}",  # the guard of the elements behind the last vector
    "vectors * LANES + {threadIdx.x => threadIdx.x + 1}",
    "{threadIdx.x < head => threadIdx.x + 1 < head} ?",
    "before = {(VECTOR_BYTES - behind) % VECTOR_BYTES => behind}",
    "head = {before < total ? before : total => before};",
    "vectors = {(total - head) / LANES => (total - head) / LANES + 1}",
    "u64 at = {blockIdx.x => blockIdx.x + 1}",
    "here = address % {(width * LANES) => (width * LANES / 2)}",
    "found.flats &= {here => true}",
    "found.rows &= {here => true}",
    "found.rows &= {head == 0 => true}",
    "if ({moves != FLAT && moves != FIXED => moves == INNER || moves == OUTER}) found.rows",
    "found.rows = {loops.inner() % LANES == 0 => true}",
    "high << (8 * ({lane % 4 => lane / 4}))",
    "put<K::WIDTH>(vector, {lane => 0}, element",
    "index = truth ? {at.template offset<THEN>() => at.template offset<ELSE>()}",
    "(0x80u << (8 * lane)) ? {then => else_}",
    "(then & {bits => ~bits})",
    "| bytes) & {0x80808080u => 0x00808080u}",
    "return {element<K, COND, u8>(cond, index) != 0 => element<K, COND, u8>(cond, index) & 1}",
    "const bool truth = {element<K, COND, u8>(cond, at.template offset<COND>()) != 0 => true}",
    "!K::SKIP || {masks[i].any() => masks[i].all()}",
    "(int lane = {0 => 1}; lane < VECTOR_BYTES / WIDTH",
    "{element >> 32 => element >> 31}",
    "static_cast<T>({index != 0 ? +source.high : +source.low => +source.low})",
    "head + {number[i] * LANES => i * LANES})",
    "      i1 = {0 => 1};",
    "ELSE) return {i1 => i0};",
    "static_cast<Index>({64ull => 63ull})",
]
"""The text of the kernels, with what stands there and what takes its place in braces."""


def planted(source):
    """The source with a variable for the faults."""
    source = "int te_select_fault;\n" + source
    for number, fault in enumerate(CUDA_FAULTS, 1):
        source = plant(source, number, fault)
    return source


@fixture(scope="module")
def on_cuda(tmp_path_factory):
    folder = tmp_path_factory.mktemp("emulated")
    functions = [lowered(w, f"kernel_{k}", threads=128) for k, w in enumerate(ON_CUDA)]
    path = cuda_standin.build(ON_CUDA, folder / "lib.so", functions=functions)
    return OnCuda(te_select.load(path), Emulated.of(functions, folder, planted))


@fixture
def kernels(on_cuda, monkeypatch):
    """The kernels, on a device that is no stricter than a real one."""
    monkeypatch.setattr("te_select.verify.cuda._failures", [])
    with on_cuda.running() as fake:
        on_cuda.emulated.library.te_select_emulator_ask(fake.fake_knows)
        yield [OnDevice(kernel) for kernel in on_cuda.kernels.values()]


def test_verify_passes_kernels_for_cuda_without_a_fault(kernels):
    assert len(kernels) == len(ON_CUDA)
    assert [r for kernel in kernels for r in verify_kernel(kernel) if not r.passed] == []


@mark.parametrize("fault", CUDA_FAULTS)
def test_verify_finds_a_fault_in_a_kernel_for_cuda(fault, kernels, on_cuda):
    chosen = ctypes.c_int.in_dll(on_cuda.emulated.library, "te_select_fault")
    chosen.value = CUDA_FAULTS.index(fault) + 1
    try:
        assert any(not r.passed for kernel in kernels for r in verify_kernel(kernel))
    finally:
        chosen.value = 0


class SpanKernel:
    """One span of the CPU as a kernel, with another text in the place of what a regex finds."""

    path = None

    def __init__(self, workload, right, wrong, folder):
        pattern = access_pattern(workload)
        config = cpu.default_config(pattern, resolve("x86-64-v3").tvm)
        span = cpu.span_of(pattern, config)
        self.workload = workload
        self._rows = (pattern.elements or 0) // span.inner
        self._inner = span.inner
        function = changed(span_function(span), right, wrong)
        self._run = compiled(function, tuple(SPAN_PARAMETERS.values()), folder)

    def __call__(self, cond, then, else_, *, out=None):
        addresses = (array.ctypes.data for array in (out, cond, then, else_))
        self._run(*addresses, self._rows, self._inner, 0)


LONG = flat_and_scalar(1043)
SHORT = flat_and_scalar(9)
THREES = Workload(*shapes("301,1 301,3 3"))
DECLARED = r"( +)(cond_1 = T.decl_buffer.*)\n"
LOADED = (
    r"\1\2\n\1T.attr(0, 'pragma_import_llvm', 'define linkonce_odr void @load(ptr %at) "
    r"alwaysinline {{\\n  %x = load volatile i8, ptr %at\\n  ret void\\n}}')\n"
    r"\1T.call_extern('void', 'load', T.address_of(cond_1[{}]))\n"
)
SPAN_FAULTS = {
    "truth by the sign": (
        LONG,
        r"(cond_\d\[T.Ramp\([^]]*, 16\)\]) != T.Broadcast\(T.uint8\(0\), 16\)",
        r"(T.reinterpret('int8x16', \1) > T.Broadcast(T.int8(0), 16))",
    ),
    "the last element is left out": (LONG, r"n_1 - T.int64\(16\)", "n_1 - T.int64(17)"),
    "a vector begins early": (LONG, r"T.Ramp\(192, 1, 64\)", "T.Ramp(188, 1, 64)"),
    "the number is another": (LONG, r"else__1\[T.Ramp\(0, ", "else__1[T.Ramp(4, "),
    "cond is read past its end": (LONG, DECLARED, LOADED.format("n")),
    "cond is read before its begin": (LONG, DECLARED, LOADED.format("-1")),
    "whole vectors of too few": (SHORT, r"if n_1 < T.int64\(16\)", "if n_1 < T.int64(8)"),
    "a part behind the last element": (SHORT, r"n_1 - T.int64\(8\)", "n_1 - T.int64(7)"),
    "a lane of another row": (THREES, r"\[5, 5, 6", "[5, 6, 6"),
}


@mark.parametrize("fault", SPAN_FAULTS)
def test_verify_finds_a_fault_in_a_span_of_the_cpu(fault, tmp_path):
    kernel = SpanKernel(*SPAN_FAULTS[fault], tmp_path)
    assert [r for r in verify_kernel(kernel) if not r.passed]


@mark.parametrize("workload", [LONG, SHORT, THREES], ids=str)
def test_verify_passes_spans_of_the_cpu_without_a_fault(workload, tmp_path):
    assert [r for r in verify_kernel(SpanKernel(workload, "^", "", tmp_path)) if not r.passed] == []
