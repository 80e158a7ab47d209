"""Shared libraries loaded from bytes: exactly the checked bytes run, whatever happens to the file.

The bytes go into memory that has a file descriptor (memfd) and is sealed against changes. If such
memory cannot be executed, they go into a private copy. This takes no tvm-ffi, whose import is slow.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os
from pathlib import Path

from te_select.errors import ArtifactError
from te_select.runtime import scratch

PRIVATE_COPY = "TE_SELECT_PRIVATE_COPY"
"""If set to any value, images are files, so that profilers such as perf can read their symbols."""
_LOCATOR = "te_select_manifest"  # the function that returns the address of an image's manifest
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_LONGEST_NAME = 200  # bytes of a memfd's name; the system takes 249


class _Any(ctypes.Structure):
    """A TVMFFIAny, of which only ints are read."""

    _fields_ = (("type_index", ctypes.c_int32), ("pad", ctypes.c_int32), ("value", ctypes.c_int64))


def load(image: bytes, sha256: str, path: Path) -> ctypes.CDLL:
    """Load a library from its bytes; it stays loaded until the process ends.

    Parameters
    ----------
    image
        The bytes, which were checked.
    sha256
        The digest in their manifest; empty for a library of the first format, which holds none.
    path
        Where they were read, for names and messages.

    Raises
    ------
    ArtifactError
        If the system cannot load it.
    """
    found = _from_memory(image, sha256, path) if sha256 else None
    return _from_copy(image, path) if found is None else found


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


def _from_memory(image: bytes, sha256: str, path: Path) -> ctypes.CDLL | None:
    """Load from a memfd; None where that cannot be, and the copy says why."""
    if os.environ.get(PRIVATE_COPY):
        return None
    try:
        name = os.fsencode(path.name)[:_LONGEST_NAME].decode(errors="ignore")
        handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except OSError:
        return None
    try:
        # The number of the process instead of "self", so that a debugger finds the symbols, too.
        with open(handle, "wb", closefd=False) as file:
            file.write(image)
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _SEALS)
        library = ctypes.CDLL(f"/proc/{os.getpid()}/fd/{handle}")
    except OSError:
        os.close(handle)
        return None
    if _digest_in_memory(library) != sha256:
        # The loader takes equal paths for equal files, and somebody closed a descriptor of ours.
        os.close(handle)
        return None
    return library  # the descriptor stays open: its number is the library's name


def _digest_in_memory(library: ctypes.CDLL) -> str:
    """The digest that a loaded library holds."""
    try:
        address = call_for_int(library, _LOCATOR)
    except ArtifactError:
        return ""
    head = len('{"sha256": "')
    return ctypes.string_at(address + head, 64).decode("ascii", "replace")


def _from_copy(image: bytes, path: Path) -> ctypes.CDLL:
    """Load a file of our own, which lies in a folder of its own until the process ends."""
    try:
        folder = scratch.make(len(image) + scratch.ROOM)
    except scratch.NoRoomError as error:
        raise scratch.NoRoomError(f"{path} cannot be loaded: {error}") from error
    try:
        copy = folder / path.name
        copy.write_bytes(image)
        copy.chmod(0o500)
        library = ctypes.CDLL(str(copy))
    except OSError as error:
        scratch.remove(folder)
        reason = " ".join(str(error).split()).replace(str(folder), str(path.parent))
        raise ArtifactError(f"{path} cannot be loaded: {reason}; {_advice(reason)}") from error
    atexit.register(scratch.remove, folder)
    return library


def _advice(reason: str) -> str:
    if "libgomp" in reason:  # libraries that te-select 0.1 made need it
        return "install GCC's OpenMP runtime (Debian: apt install libgomp1)"
    if "failed to map" in reason or "not permitted" in reason:
        return "set TMPDIR to a folder from which programs may be run"
    return "export it again for this machine"
