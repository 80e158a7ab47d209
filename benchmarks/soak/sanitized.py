"""The C half under AddressSanitizer and UBSan, called with fake tensors of every kind.

What a library links to its kernels, and the stub that is generated for it, are compiled with
``-fsanitize=address,undefined``, together with a driver (``sanitized.c``) whose kernels touch every
byte that they may. The driver draws tensors, right ones and wrong ones, and knows the rule.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tvm_ffi import libinfo

from soak import draws
from soak.found import Found
from te_select import Workload
from te_select.machines.c_compiler import c_compiler
from te_select.machines.cpu import link
from te_select.operator.broadcast import Shape
from te_select.runtime import embedded, scratch
from te_select.runtime.manifest import KernelRecord, Manifest

_DRIVER = Path(__file__).with_name("sanitized.c")
_RUNTIME = Path(scratch.__file__).parent
SOURCES = tuple(_RUNTIME / name for name in link.CPU.sources)
"""The files that are linked to the kernels of every library."""
_SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1")
_RANK, _NAMES, _ELEMENTS = 8, 8, 1 << 12  # what the driver has room for
_SECONDS = 200.0
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1",
    "OMP_NUM_THREADS": "3",
    "OMP_WAIT_POLICY": "passive",  # threads that wait leave the cores to others
}


def attack(seed: int, found: Found, calls: int = 50_000, kernels: int = 12) -> None:
    """Compile a driver for random kernels, and have it make calls."""
    rng = np.random.default_rng(seed)
    workloads = _workloads(rng, kernels)
    with tempfile.TemporaryDirectory() as folder:
        driver = compile_driver(workloads, Path(folder))
        command = (str(driver), str(seed), str(calls))
        found.doing(shlex.join(command))
        try:
            done = subprocess.run(
                command,
                env=os.environ | _OPTIONS,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_SECONDS,
            )
        except subprocess.TimeoutExpired:
            found.failed(f"the driver had not ended after {_SECONDS:.0f} s")
            return
    if done.returncode == 0:
        taken, refused = map(int, done.stdout.split())
        found.tried("calls with fake tensors that were taken", taken)
        found.tried("calls with fake tensors that were refused", refused)
    else:
        found.failed(_report(done))


def compile_driver(
    workloads: Sequence[Workload], folder: Path, sources: Sequence[Path] = SOURCES
) -> Path:
    """Compile what `link` would link to a library's kernels, and the driver, to a program.

    Parameters
    ----------
    workloads
        The kernels to call.
    folder
        Where to build.
    sources
        The C half.

    Returns
    -------
    Path
        The program.
    """
    symbols = [f"soak_kernel_{i}" for i in range(len(workloads))]
    entries = [
        # Of the first half every call is for several threads, and some are past the cache.
        link.KernelEntry(
            workload, (link.Version(symbol, link.Decisions(16, 64) if i % 2 else link.Decisions()),)
        )
        for i, (workload, symbol) in enumerate(zip(workloads, symbols, strict=True))
    ]
    manifest = Manifest(
        tuple(KernelRecord(workload, {}) for workload in workloads),
        {"name": "x86-64", "kind": "cpu", "cpu_features": []},
        {},
    )
    (folder / "stub.c").write_text(link.stub_source(entries, [link.Level("x86-64", ())]))
    (folder / "manifest.s").write_text(embedded.assembly(manifest))
    (folder / "kernels.h").write_text(_described(workloads, symbols))
    includes = dict.fromkeys(
        (folder, _DRIVER.parent, _RUNTIME, *(source.parent for source in SOURCES))
    )
    libtvm_ffi = Path(libinfo.find_libtvm_ffi()).parent
    program = folder / "driver"
    subprocess.run(
        (
            *c_compiler(),
            *("-std=gnu11", *_SANITIZED, *link.CPU.options),
            *(f"-I{path}" for path in (*includes, *libinfo.include_paths())),
            *map(str, (_DRIVER, folder / "stub.c", folder / "manifest.s", *sources)),
            *(f"-L{libtvm_ffi}", "-ltvm_ffi", "-Xlinker", f"-rpath={libtvm_ffi}"),
            *("-o", str(program)),
        ),
        check=True,
    )
    return program


def _workloads(rng: np.random.Generator, count: int) -> list[Workload]:
    """Workloads that differ and that the driver has room for."""
    found: dict[str, Workload] = {}
    while len(found) < count:
        workload = draws.workload(rng)
        elements = 1
        for dim in workload.out_shape:
            elements *= dim if isinstance(dim, int) else 1
        if len(workload.out_shape) <= _RANK and elements <= _ELEMENTS:
            found[workload.name] = workload
    return list(found.values())


def _described(workloads: Sequence[Workload], symbols: Sequence[str]) -> str:
    """The C description of the kernels, and the stand-ins that the stub calls."""
    lines = []
    for workload, symbol in zip(workloads, symbols, strict=True):
        lines += [
            f"int32_t {symbol}(char* c, char* t, char* e, char* o) {{ return run(c, t, e, o); }}",
            *(
                f"int __tvm_ffi_{workload.name}{suffix}(void*, const TVMFFIAny*, int32_t, "
                "TVMFFIAny*);"
                for suffix in ("", "__bits", "__try")
            ),
        ]
    rows = ",\n  ".join(map(_row, workloads))
    return "\n".join(lines) + f"\nstatic const spec specs[] = {{\n  {rows}}};\n"


def _row(workload: Workload) -> str:
    shapes = (workload.cond_shape, workload.then_shape, workload.else_shape, workload.out_shape)
    functions = ", ".join(
        f"__tvm_ffi_{workload.name}{suffix}" for suffix in ("", "__bits", "__try")
    )
    element = workload.element
    ranks = ", ".join(str(len(shape)) for shape in shapes)
    dims = ", ".join(_dims(shape, workload.dim_names) for shape in shapes)
    return (
        f'{{"{workload.name}", {{{functions}}}, {element.code}, {element.bits}, {{{ranks}}}, '
        f"{{{dims}}}}}"
    )


def _dims(shape: Shape, names: Sequence[str]) -> str:
    return (
        "{"
        + (", ".join(str(d if isinstance(d, int) else -names.index(d) - 1) for d in shape) or "0")
        + "}"
    )


def _report(done: subprocess.CompletedProcess[str]) -> str:
    """What a driver has said, in one line."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines()]
    marks = ("call ", "runtime error", "ERROR: ", "in call ", "#0", "#1")
    said = [line for line in lines if any(mark in line for mark in marks)]
    return "; ".join(said[:6]) or f"the driver ended with code {done.returncode}"
