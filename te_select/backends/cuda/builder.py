"""CUDA: nvcc or NVRTC make machine code, embedded in a library whose host half launches it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from te_select.backends import limits
from te_select.backends.cuda import compilers, link, lowering, nvcc
from te_select.backends.cuda.lowering import CudaFunction
from te_select.backends.cuda.target import CudaTarget
from te_select.backends.scheduled import Scheduled, symbol
from te_select.errors import TuningError
from te_select.operator.access import access_pattern
from te_select.runtime.artifact.fields import Component
from te_select.runtime.artifact.manifest import Manifest
from te_select.runtime.call.cuda import driver


def write_library(
    chosen: Sequence[Scheduled],
    target: CudaTarget,
    manifest: Manifest,
    path: Path,
    static: Path | None = None,
) -> None:
    """Write the shared library of scheduled workloads.

    Parameters
    ----------
    chosen
        The workloads, all different.
    target
        The target for which they were scheduled.
    manifest
        What the library holds, which goes into it.
    path
        The ``.so`` to write; its folder exists.
    static
        The ``.a`` or ``.o`` to write with the same code, or None.
    """
    functions = {one.workload: _lower(one, symbol(i)) for i, one in enumerate(chosen)}
    unit = lowering.translation_unit(functions.values())
    binary = compilers.compile_cuda(unit, target.archs)
    link.link(binary, functions, manifest, path, static)


def requirements(target: CudaTarget) -> dict[str, Any]:
    """The architectures for which there is machine code; the PTX is of the last."""
    return {"kind": target.kind, "archs": list(target.archs), "cpu_features": []}


def missing(_target: CudaTarget) -> list[str]:
    """Nothing: only a call needs a device; building, loading and inspecting do not."""
    return []


def versions() -> dict[str, str]:
    """The version of the CUDA compiler."""
    return {"cuda_compiler": compilers.describe() or "none"}


def components() -> tuple[Component, ...]:
    """The CUDA compiler."""
    used: Any = compilers.find()
    return (Component(used.NAME, used.version(), "compiler", used.LICENCE),)


def source(one: Scheduled, target: CudaTarget, form: str) -> str:
    """The code in one form: lowered loops around the span, CUDA C++, PTX, or SASS."""
    made = _lower(one, symbol(0))
    if form == "tir":
        return str(made.func.script())
    if form == "cuda":
        return made.source
    binary = compilers.compile_cuda(made.source, target.archs)
    if form == "ptx":
        return binary.ptx
    listings = {arch: nvcc.disassemble(cubin) for arch, cubin in binary.cubins.items()}
    return "\n".join(f"// {arch}\n{text}" for arch, text in listings.items())


def device() -> str:
    """The name of CUDA device 0."""
    try:
        return driver.devices()[0].name
    except driver.CudaError:
        return ""


def tuned_on(target: CudaTarget) -> tuple[str, int | None]:
    """Name CUDA device 0, which must be of the target's one architecture."""
    if len(target.archs) > 1:
        raise TuningError(
            f"target {target.name!r} names {len(target.archs)} architectures; expected one: its "
            f"own records are those of cuda:{target.archs[-1]}"
        )
    try:
        device = driver.devices()[0]
    except driver.CudaError as error:
        raise TuningError(
            f"target {target.name!r} cannot be measured here: {error}; run this on a machine with "
            f"an NVIDIA GPU of architecture {target.archs[0]}"
        ) from error
    if device.arch != target.archs[0]:
        raise TuningError(
            f"target {target.name!r} cannot be measured here: device 0 is {device.name}, of "
            f"architecture {device.arch}; expected cuda:{device.arch}, or another device in "
            "CUDA_VISIBLE_DEVICES"
        )
    return device.name, None


def _lower(one: Scheduled, name: str) -> CudaFunction:
    with limits.tvm_errors_as_ours(one.workload):
        return lowering.lower(one.func, name, one.workload.dim_names, access_pattern(one.workload))
