"""The C half under AddressSanitizer and UBSan, called with arguments of every kind.

The C half and the generated stub are compiled with a program (``sanitized.c``). Its kernels touch
every byte that they may touch. The program draws right and wrong tensors, and pointers and sizes
for the plain functions of headers; it knows which are right.
"""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from soak import draws, driver
from soak.found import Found
from te_select import Workload
from te_select.backends.cpu import link
from te_select.operator.broadcast import Shape
from te_select.runtime.artifact.manifest import c_name
from te_select.runtime.call.cpu.decisions import Decisions

_MAIN = Path(__file__).with_name("sanitized.c")
_RANK, _ELEMENTS = 8, 1 << 12  # limits of the program
_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
    "TE_SELECT_NUM_THREADS": "3",
}
_DECISIONS = (
    Decisions(),
    Decisions(bytes_per_thread=16, stream_from=64, skip=1, backwards=1),
    Decisions(bytes_per_thread=-1, stream_from=-1, skip=-1, backwards=-1),
)


def attack(
    seed: int,
    found: Found,
    calls: int = 50_000,
    kernels: int = 12,
    sources: Sequence[Path] = driver.SOURCES,
) -> None:
    """Compile a program for random kernels, and have it make calls."""
    workloads = _workloads(np.random.default_rng(seed), kernels)
    entries = [
        link.KernelEntry(
            workload, (link.Version(f"soak_kernel_{i}", _DECISIONS[i % len(_DECISIONS)]),)
        )
        for i, workload in enumerate(workloads)
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernels.h").write_text(_described(entries))
        program = driver.compile_driver(
            _MAIN, entries, folder, "-fsanitize=address,undefined", sources=sources
        )
        numbers = driver.run((str(program), str(seed), str(calls)), found, _ENVIRONMENT)
    if numbers is not None:
        taken, refused = numbers
        found.tried("calls with fake arguments that were taken", taken)
        found.tried("calls with fake arguments that were refused", refused)


def _workloads(rng: np.random.Generator, count: int) -> list[Workload]:
    """Different workloads within the limits of the program."""
    found: dict[str, Workload] = {}
    while len(found) < count:
        workload = draws.workload(rng)
        elements = math.prod(dim for dim in workload.out_shape if isinstance(dim, int))
        if len(workload.out_shape) <= _RANK and elements <= _ELEMENTS:
            found[workload.name] = workload
    return list(found.values())


def _described(entries: Sequence[link.KernelEntry]) -> str:
    """The C description of the kernels, and the stand-ins that the stub calls."""
    functions = "\n".join(map(_functions, entries))
    rows = ",\n  ".join(_row(entry.workload) for entry in entries)
    return f"{functions}\nstatic const spec specs[] = {{\n  {rows}}};\n"


def _functions(entry: link.KernelEntry) -> str:
    names = range(len(entry.workload.dim_names))
    sizes = "".join(f", int64_t n{k}" for k in names)
    declared = "\n".join(
        f"int {name}(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);"
        for name in _exported(entry.workload)
    )
    plain = c_name(entry.workload)
    given = "".join(f", sizes[{k}]" for k in names)
    return f"""\
int32_t {entry.versions[0].symbol}(char* c, char* t, char* e, char* o{sizes}, int64_t flags,
    int64_t task, int64_t tasks) {{
  return run(c, t, e, o, task, tasks);
}}
{declared}
int {plain}(const void*, const void*, const void*, void*{sizes});
static int call_{plain}(void* const* data, const int64_t* sizes) {{
  return {plain}(data[0], data[1], data[2], data[3]{given});
}}"""


def _row(workload: Workload) -> str:
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape, workload.out_shape)
    element = workload.element
    ranks = ", ".join(str(len(shape)) for shape in shapes)
    dims = ", ".join(_dims(shape, workload.dim_names) for shape in shapes)
    return (
        f'{{"{workload.name}", {{{", ".join(_exported(workload))}}}, call_{c_name(workload)}, '
        f"{element.code}, "
        f"{element.bits}, {{{ranks}}}, {{{dims}}}}}"
    )


def _exported(workload: Workload) -> list[str]:
    return [f"__tvm_ffi_{workload.name}{suffix}" for suffix in ("", "__bits", "__try")]


def _dims(shape: Shape, names: Sequence[str]) -> str:
    dims = [str(dim) if isinstance(dim, int) else str(-names.index(dim) - 1) for dim in shape]
    return "{" + (", ".join(dims) or "0") + "}"
