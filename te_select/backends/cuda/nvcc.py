"""Programs of the CUDA toolkit, nvcc and nvdisasm, found the way the ecosystem finds them."""

import functools
import os
import re
import shutil
from pathlib import Path

from te_select.backends.programs import run
from te_select.base import scratch
from te_select.errors import ToolchainError, caught

OPTIONS = ("-std=c++17",)
SOURCE = "kernels.cu"
NAME = "nvcc"
LICENCE = "LicenseRef-NVIDIA-CUDA-EULA"


@functools.cache
def utility(name: str) -> str | None:
    """A program on the path, in ``$CUDA_HOME`` or in a Python package; None if there is none."""
    found = shutil.which(name)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if found is None and os.environ.get(variable):
            found = shutil.which(name, path=str(Path(os.environ[variable]) / "bin"))
    if found is not None:
        return found
    try:
        from cuda import pathfinder  # noqa: PLC0415 - an extra

        packaged = pathfinder.find_nvidia_binary_utility(name)
    except caught(
        ImportError, AttributeError, RuntimeError, OSError
    ):  # its own process may time out
        return None
    return None if packaged is None else str(packaged)


def is_installed() -> bool:
    """Whether nvcc is found."""
    return utility("nvcc") is not None


def version() -> str:
    """Version of nvcc, such as ``"13.0.88"``."""
    match = re.search(r"\bV(\d[\d.]*)", _nvcc("--version").decode())
    return match.group(1) if match else "of unknown version"


@functools.cache
def archs() -> tuple[str, ...]:
    """The names that nvcc gives for real archs."""
    return tuple(_nvcc("--list-gpu-code").decode().split())


def compile_for(source: str, arch: str) -> tuple[bytes, str]:
    """Compile CUDA C++ by nvcc to machine code and PTX of one arch.

    Raises
    ------
    ToolchainError
        If nvcc refuses the source or the arch.
    """
    with scratch.folder() as folder:
        (folder / SOURCE).write_text(source, encoding="utf-8")
        # Names have no folder, so that the same source gives the same bytes.
        ptx, cubin = (str(Path(SOURCE).with_suffix(suffix)) for suffix in (".ptx", ".cubin"))
        _nvcc(*OPTIONS, f"-arch={arch}", "-ptx", SOURCE, "-o", ptx, folder=folder)
        _nvcc(f"-arch={arch}", "-cubin", ptx, "-o", cubin, folder=folder)
        return (folder / cubin).read_bytes(), (folder / ptx).read_text(encoding="utf-8")


def disassemble(cubin: bytes) -> str:
    """List machine code by nvdisasm.

    Raises
    ------
    ToolchainError
        If there is no nvdisasm, or it fails.
    """
    nvdisasm = utility("nvdisasm")
    if nvdisasm is None:
        raise ToolchainError(
            "no nvdisasm is found; install the CUDA toolkit, or pip install nvidia-cuda-nvdisasm"
        )
    with scratch.folder() as folder:
        path = folder / "kernels.cubin"
        path.write_bytes(cubin)
        return run(nvdisasm, "-c", str(path)).decode()


def _nvcc(*arguments: str, folder: Path | None = None) -> bytes:
    return run(utility("nvcc") or "nvcc", *arguments, folder=folder)
