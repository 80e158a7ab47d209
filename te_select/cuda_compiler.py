"""The CUDA compiler: from CUDA C++ to machine code, PTX and a listing of machine code.

``nvcc`` where it is installed, else NVRTC from the package index (``te-select[cuda]``). Neither
needs a GPU or a driver.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from te_select.errors import TargetError, ToolchainError

Compiler = Literal["nvcc", "nvrtc"]
OPTIONS = ("-std=c++17",)
_ARCH = re.compile(r"sm_(\d{2,3})")
_ERROR_LINES = 8
_INSTALL = (
    "install the CUDA toolkit, or NVRTC from the package index: pip install 'te-select[cuda]'"
)


@dataclass(frozen=True)
class CudaBinary:
    """What a translation unit was compiled to.

    Parameters
    ----------
    cubins
        Machine code, an ELF file, by arch, in the order in which the archs were given.
    ptx
        PTX of the newest of the archs, for those that come after it.
    """

    cubins: dict[str, bytes]
    ptx: str


def is_arch(name: str) -> bool:
    """Whether ``name`` has the form of an arch, ``sm_90``."""
    return _ARCH.fullmatch(name) is not None


def archs() -> tuple[str, ...]:
    """List the archs that the compiler at hand knows, oldest first; none without a compiler."""
    found = find()
    if found == "nvcc":
        listed = _run([_nvcc() or "nvcc", "--list-gpu-code"]).decode().split()
        return tuple(sorted(filter(is_arch, listed), key=_number))
    if found == "nvrtc":
        nvrtc = _nvrtc()
        return tuple(f"sm_{number}" for number in _checked(nvrtc, nvrtc.nvrtcGetSupportedArchs()))
    return ()


def find() -> Compiler | None:
    """Find the CUDA compiler that `compile_cuda` uses, or None."""
    if _nvcc() is not None:
        return "nvcc"
    return "nvrtc" if _nvrtc() is not None else None


@functools.cache
def describe() -> str | None:
    """Name and version of the compiler, or None where there is none."""
    found = find()
    if found == "nvcc":
        text = _run([_nvcc() or "nvcc", "--version"]).decode()
        version = re.search(r"\bV(\d[\d.]*)", text)
        return f"nvcc {version.group(1) if version else 'of unknown version'}"
    if found == "nvrtc":
        major, minor = _checked(_nvrtc(), _nvrtc().nvrtcVersion())
        return f"NVRTC {major}.{minor}"
    return None


def compile_cuda(source: str, archs: Sequence[str], compiler: Compiler | None = None) -> CudaBinary:
    """Compile CUDA C++.

    Parameters
    ----------
    source
        A translation unit without includes.
    archs
        For which to make machine code, such as ``["sm_80", "sm_90"]``; at least one.
    compiler
        ``"nvcc"`` or ``"nvrtc"``; None for what `find` finds.

    Returns
    -------
    CudaBinary
        Machine code for every arch, and PTX of the newest.

    Raises
    ------
    TargetError
        If a name is not that of an arch.
    ToolchainError
        If there is no compiler, or it refuses the source or an arch.
    """
    wrong = [arch for arch in archs if not is_arch(arch)]
    if wrong or not archs:
        raise TargetError(f"CUDA archs {list(archs)} are not known; expected names such as sm_90")
    chosen = compiler or find()
    if chosen == "nvcc" and _nvcc() is not None:
        compile_one = _by_nvcc
    elif chosen == "nvrtc" and _nvrtc() is not None:
        compile_one = _by_nvrtc
    else:
        raise ToolchainError(f"no CUDA compiler is found ({chosen or 'nvcc, NVRTC'}); {_INSTALL}")
    cubins = {arch: compile_one(source, arch, "cubin") for arch in archs}
    newest = max(archs, key=_number)
    return CudaBinary(cubins, compile_one(source, newest, "ptx").decode())


def sass(cubin: bytes) -> str:
    """List machine code.

    Parameters
    ----------
    cubin
        Machine code of one arch.

    Returns
    -------
    str
        The instructions, as nvdisasm prints them.

    Raises
    ------
    ToolchainError
        If there is no nvdisasm, or it fails.
    """
    nvdisasm = _utility("nvdisasm")
    if nvdisasm is None:
        raise ToolchainError(
            "no nvdisasm is found; install the CUDA toolkit, or pip install 'te-select[cuda]'"
        )
    with tempfile.TemporaryDirectory(prefix="te_select-") as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(cubin)
        return _run([nvdisasm, "-c", str(path)]).decode()


def _by_nvcc(source: str, arch: str, kind: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="te_select-") as folder:
        (Path(folder) / "kernels.cu").write_text(source, encoding="utf-8")
        # Names without the folder: the same source gives the same bytes.
        options = [*OPTIONS, f"-arch={arch}", f"-{kind}", "kernels.cu", "-o", f"kernels.{kind}"]
        _run([_nvcc() or "nvcc", *options], folder)
        return (Path(folder) / f"kernels.{kind}").read_bytes()


def _by_nvrtc(source: str, arch: str, kind: str) -> bytes:
    nvrtc = _nvrtc()
    text = source.encode()
    program = _checked(nvrtc, nvrtc.nvrtcCreateProgram(text, b"kernels.cu", 0, [], []))
    try:
        name = arch if kind == "cubin" else arch.replace("sm_", "compute_")
        options = [option.encode() for option in (*OPTIONS, f"-arch={name}")]
        status = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = b" " * _checked(nvrtc, nvrtc.nvrtcGetProgramLogSize(program))
            _checked(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
            raise ToolchainError(f"NVRTC for {arch} failed ({status.name}): {_last(log)}")
        read = (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        if kind == "ptx":
            read = (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
        binary = bytes(_checked(nvrtc, read[0](program)))
        _checked(nvrtc, read[1](program, binary))
        return binary if kind == "cubin" else binary.rstrip(b"\0")
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _checked(nvrtc: Any, returned: tuple[Any, ...]) -> Any:
    """The value of an NVRTC call: what follows its status."""
    status, *values = returned
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ToolchainError(f"NVRTC failed: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)


def _number(arch: str) -> int:
    return int(arch.removeprefix("sm_"))


def _nvcc() -> str | None:
    return _utility("nvcc")


@functools.cache
def _nvrtc() -> Any:
    """The NVRTC bindings, or None where they or the library are missing."""
    try:
        from cuda.bindings import nvrtc  # noqa: PLC0415 - an extra

        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError):
        return None
    return nvrtc


@functools.cache
def _utility(name: str) -> str | None:
    """A program of the CUDA toolkit: on the path, in ``$CUDA_HOME``, or a Python package's."""
    found = shutil.which(name)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if found is None and os.environ.get(variable):
            found = shutil.which(name, path=str(Path(os.environ[variable]) / "bin"))
    if found is not None:
        return found
    try:
        from cuda import pathfinder  # noqa: PLC0415 - an extra

        packaged = pathfinder.find_nvidia_binary_utility(name)
    except (ImportError, AttributeError, RuntimeError):
        return None
    return None if packaged is None else str(packaged)


def _run(command: Sequence[str], folder: str | None = None) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, check=False, cwd=folder)
    except OSError as error:
        raise ToolchainError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        said = done.stderr or done.stdout
        name = Path(command[0]).name
        raise ToolchainError(f"{name} failed with exit code {done.returncode}: {_last(said)}")
    return done.stdout


def _last(text: bytes) -> str:
    lines = text.decode(errors="replace").strip("\0 \n").splitlines()[-_ERROR_LINES:]
    return "; ".join(line.strip() for line in lines)
