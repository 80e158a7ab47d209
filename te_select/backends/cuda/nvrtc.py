"""NVRTC, NVIDIA's compiler as a library, from the package index."""

import functools
from typing import Any

from te_select.backends.cuda.nvcc import OPTIONS, SOURCE
from te_select.backends.programs import last_lines
from te_select.errors import ToolchainError, caught

NAME = "NVRTC"
LICENCE = "LicenseRef-NVIDIA-CUDA-EULA"


@functools.cache
def bindings() -> Any:
    """The bindings, or None if they or the library are missing."""
    try:
        from cuda.bindings import nvrtc  # noqa: PLC0415 - an extra

        nvrtc.nvrtcVersion()
    except caught(ImportError, RuntimeError):
        return None
    return nvrtc


def is_installed() -> bool:
    """Whether the bindings and the library are there."""
    return bindings() is not None


def version() -> str:
    """Version of NVRTC, such as ``"13.0"``."""
    major, minor = _call("nvrtcVersion")
    return f"{major}.{minor}"


def archs() -> tuple[str, ...]:
    """The archs that it knows."""
    return tuple(f"sm_{number}" for number in _call("nvrtcGetSupportedArchs"))


def compile_for(source: str, arch: str) -> tuple[bytes, str]:
    """Compile CUDA C++ to machine code and PTX of one arch.

    Raises
    ------
    ToolchainError
        If NVRTC refuses the source or the arch.
    """
    nvrtc = bindings()
    program = _call("nvrtcCreateProgram", source.encode(), SOURCE.encode(), 0, [], [])
    try:
        options = [option.encode() for option in (*OPTIONS, f"-arch={arch}")]
        status = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _read("ProgramLog", program)
            raise ToolchainError(f"NVRTC for {arch} failed ({status.name}): {last_lines(log)}")
        return _read("CUBIN", program), _read("PTX", program).rstrip(b"\0").decode()
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read(what: str, program: Any) -> bytes:
    """A result of a compilation: ``"CUBIN"``, ``"PTX"`` or ``"ProgramLog"``."""
    content = bytes(_call(f"nvrtcGet{what}Size", program))
    _call(f"nvrtcGet{what}", program, content)  # fills the bytes
    return content


def _call(function: str, *arguments: Any) -> Any:
    """The value of an NVRTC call, without its status."""
    nvrtc = bindings()
    status, *values = getattr(nvrtc, function)(*arguments)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        raise ToolchainError(f"{function} failed: {status.name}")
    return values[0] if len(values) == 1 else tuple(values)
