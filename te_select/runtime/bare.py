"""Shared libraries loaded from bytes without tvm-ffi, which takes long to import.

As in `te_select.runtime.image`, what was checked is what runs: the bytes go into sealed memory that
has a file descriptor, or into a private copy where such memory cannot be executed.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os

from te_select.errors import ArtifactError
from te_select.runtime import scratch

_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


class _Any(ctypes.Structure):
    """A TVMFFIAny, of which only ints are read."""

    _fields_ = (("type_index", ctypes.c_int32), ("pad", ctypes.c_int32), ("value", ctypes.c_int64))


def load(image: bytes, name: str) -> ctypes.CDLL:
    """Load a library from its bytes; it stays loaded until the process ends.

    Parameters
    ----------
    image
        The bytes, which were checked.
    name
        What it is called in messages and by debuggers.

    Raises
    ------
    ArtifactError
        If the system cannot load it.
    """
    try:
        handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with open(handle, "wb", closefd=False) as file:
            file.write(image)
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _SEALS)
        return ctypes.CDLL(f"/proc/{os.getpid()}/fd/{handle}")  # its number is the library's name
    except OSError:
        return _from_copy(image, name)


def call_for_int(library: ctypes.CDLL, function: str) -> int:
    """Call an exported function without arguments, which returns an int.

    Raises
    ------
    ArtifactError
        If the library has no such function.
    """
    try:
        found = library[f"__tvm_ffi_{function}"]
    except AttributeError as error:
        raise ArtifactError(f"the library has no function {function}; build it again") from error
    found.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(_Any))
    result = _Any()
    found(None, None, 0, ctypes.byref(result))
    return int(result.value)


def _from_copy(image: bytes, name: str) -> ctypes.CDLL:
    folder = scratch.make(len(image) + scratch.ROOM)
    atexit.register(scratch.remove, folder)
    try:
        copy = folder / name
        copy.write_bytes(image)
        copy.chmod(0o500)
        return ctypes.CDLL(str(copy))
    except OSError as error:
        scratch.remove(folder)
        raise ArtifactError(f"{name} cannot be loaded: {error}") from error
