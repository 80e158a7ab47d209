"""The CUDA compiler: from CUDA C++ to machine code and PTX.

It is ``nvcc`` if that is installed, otherwise NVRTC from the package index.
Neither needs a GPU or a driver.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from te_select.backends.cuda import nvcc, nvrtc
from te_select.backends.programs import first_line
from te_select.base.variables import check_building
from te_select.errors import TargetError, ToolchainError
from te_select.runtime.call.cuda import driver

COMPILERS = (nvcc, nvrtc)
_ARCH = re.compile(r"sm_(\d{2,3})")
_KEPT = 8  # results; who asks for one level of a kernel's source often asks for another
_INSTALL = (
    "install the CUDA toolkit, or NVRTC from the package index: pip install cuda-bindings "
    "nvidia-cuda-nvrtc"
)


@dataclass(frozen=True)
class CudaBinary:
    """The result of compiling a translation unit.

    Parameters
    ----------
    cubins
        Machine code, an ELF file, by arch, in the order in which the archs were given.
    ptx
        PTX of the newest arch, for archs that come after it.
    """

    cubins: dict[str, bytes]
    ptx: str


def is_arch(name: str) -> bool:
    """Whether ``name`` has the form of an arch, ``sm_90``."""
    return _ARCH.fullmatch(name) is not None


def archs() -> tuple[str, ...]:
    """List the archs that the compiler knows, oldest first; empty without a compiler."""
    found: Any = find()
    return tuple(sorted(filter(is_arch, found.archs()), key=number)) if found else ()


def find() -> ModuleType | None:
    """Find the CUDA compiler that `compile_cuda` uses, or None."""
    return next((each for each in COMPILERS if each.is_installed()), None)


@functools.cache
def describe() -> str | None:
    """Name and version of the compiler, or None if there is none."""
    found: Any = find()
    return f"{found.NAME} {found.version()}" if found else None


def compile_cuda(source: str, archs: Sequence[str]) -> CudaBinary:
    """Compile CUDA C++.

    Parameters
    ----------
    source
        A translation unit without includes.
    archs
        The archs to make machine code for, such as ``["sm_80", "sm_90"]``; at least one.

    Returns
    -------
    CudaBinary
        Machine code for every arch, and PTX of the newest.

    Raises
    ------
    TargetError
        If a name is not the name of an arch.
    ToolchainError
        If there is no compiler, or it refuses the source or an arch.
    """
    wrong = [arch for arch in archs if not is_arch(arch)]
    if wrong or not archs:
        raise TargetError(f"CUDA archs {list(archs)} are not known; expected names such as sm_90")
    if (found := find()) is None:
        raise ToolchainError(f"no CUDA compiler is found (nvcc, NVRTC); {_INSTALL}")
    return _compiled(source, tuple(archs), found)


@functools.lru_cache(maxsize=_KEPT)
def _compiled(source: str, archs: tuple[str, ...], compiler: Any) -> CudaBinary:
    check_building("machine code of CUDA")
    made = {arch: compiler.compile_for(source, arch) for arch in archs}
    cubins = {arch: cubin for arch, (cubin, _) in made.items()}
    return CudaBinary(cubins, made[max(archs, key=number)][1])


def number(arch: str) -> int:
    """The number of an arch, by which archs are ordered."""
    return int(arch.removeprefix("sm_"))


def environment() -> dict[str, dict[str, Any]]:
    """The sections ``toolchains`` and ``gpus``; without a GPU, the reason."""
    return {"toolchains": {"cuda_compiler": describe()}, "gpus": _gpus()}


def _gpus() -> dict[str, str | None]:
    """CUDA devices by number, and the driver's version; or why there are none."""
    try:
        found = driver.devices()
    except driver.CudaError as error:
        return {"none": str(error)}
    described = {
        f"device {device.index}": f"{device.name}, {device.arch}, {device.memory / 2**30:.0f} GiB, "
        f"L2 {device.l2 / 2**20:.0f} MiB"
        for device in found
    }
    query = ("--query-gpu=driver_version", "--format=csv,noheader")
    return {**described, "driver": first_line("nvidia-smi", *query)}
