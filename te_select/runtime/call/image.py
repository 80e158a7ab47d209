"""The images of a process: libraries loaded from bytes, one for each content.

Exactly the bytes that were checked run, whatever happens to the file. They go into memory that has
a file descriptor (memfd) and is sealed against changes. If such memory cannot be executed, they go
into a private copy. Only `load` and `open_again` import tvm-ffi, which is slow.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from te_select.base import scratch
from te_select.errors import ArtifactError, caught, warn

if TYPE_CHECKING:
    import tvm_ffi

    from te_select.runtime.artifact.stored import Stored

# If set to any value but an empty one, images are files, whose symbols profilers such as perf read.
PRIVATE_COPY = "TE_SELECT_PRIVATE_COPY"
# The releases of apache-tvm-ffi of which the oldest and the newest are tested: make tvm-ffi.
TESTED = ">=0.1.9,<0.2"
_OLDEST = 9  # in 0.1.9
_LOCATOR = "te_select_manifest"  # the function that returns the address of an image's manifest
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_LONGEST_NAME = 200  # bytes of a memfd's name; the system takes 249

_images: dict[str, tuple[tvm_ffi.Module, ctypes.CDLL]] = {}
_lock = threading.Lock()


class _Any(ctypes.Structure):
    """A TVMFFIAny, of which only ints are read."""

    _fields_ = (("type_index", ctypes.c_int32), ("pad", ctypes.c_int32), ("value", ctypes.c_int64))


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - a forked child needs a new one: its parent's may be held
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def load(library: Stored, path: Path) -> tuple[tvm_ffi.Module, ctypes.CDLL]:
    """Load a library; equal libraries are loaded once.

    Parameters
    ----------
    library
        The library, which was checked.
    path
        The file from which it was read, for names and messages.

    Returns
    -------
    tuple of tvm_ffi.Module and ctypes.CDLL
        The library, as tvm-ffi opens it and as ctypes does; it stays loaded until the process ends.

    Raises
    ------
    ArtifactError
        If the system cannot load it.
    """
    with _lock:
        if library.sha256 not in _images:
            loaded = load_bytes(library.image, library.sha256, path)
            _images[library.sha256] = open_again(loaded), loaded
        return _images[library.sha256]


def open_again(library: ctypes.CDLL) -> tvm_ffi.Module:
    """Open by tvm-ffi what `load_bytes` has loaded."""
    # The loader by its name, as the file's own may have any ending.
    loader = _ffi().get_global_func("ffi.Module.load_from_file.so")
    module: tvm_ffi.Module = loader(library._name, "so")
    return module


def warn_of_untested(version: str) -> None:
    """Warn if a release of apache-tvm-ffi is not among the tested ones.

    Warns
    -----
    RuntimeWarning
        If it is not.
    """
    found = re.match(r"0\.1\.(\d+)", version)
    if found is None or int(found[1]) < _OLDEST:
        warn(f"apache-tvm-ffi is {version}; te-select was tested with {TESTED}, and expects that")


@functools.cache
def _ffi() -> Any:
    import tvm_ffi  # noqa: PLC0415 - as this module says

    warn_of_untested(tvm_ffi.__version__)
    return tvm_ffi


def load_bytes(image: bytes, sha256: str, path: Path) -> ctypes.CDLL:
    """Load a library from its bytes, which have this digest, as `load` does without tvm-ffi."""
    found = _from_memory(image, sha256, path)
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
    except caught(AttributeError) as error:
        raise ArtifactError(f"the library has no function {function}; build it again") from error
    found.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(_Any))
    result = _Any()
    found(None, None, 0, ctypes.byref(result))
    return int(result.value)


def _from_memory(image: bytes, sha256: str, path: Path) -> ctypes.CDLL | None:
    """Load from a memfd; None if that cannot be, and then the copy says why."""
    if os.environ.get(PRIVATE_COPY):
        return None
    try:
        name = os.fsencode(path.name)[:_LONGEST_NAME].decode(errors="ignore")
        handle = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except caught(OSError):
        return None
    try:
        with open(handle, "wb", closefd=False) as file:
            file.write(image)
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _SEALS)
        library = ctypes.CDLL(f"/proc/self/fd/{_as_path(sha256)}{handle}")
    except caught(OSError):
        return None
    finally:
        os.close(handle)
    return library if _digest_in_memory(library) == sha256 else None


def _as_path(digest: str) -> str:
    """A path that leads nowhere, another one for each digest.

    The loader takes equal paths for equal files, and the number of a descriptor comes again.
    """
    return "".join("./" if bit == "1" else "/" for bit in f"{int(digest, 16):0256b}")


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
        copy = folder.joinpath(path.name)
        copy.write_bytes(image)
        copy.chmod(0o500)
        library = ctypes.CDLL(str(copy))
    except caught(OSError) as error:
        scratch.remove(folder)
        reason = " ".join(str(error).split()).replace(str(folder), str(path.parent))
        advice = "export it again for this machine"
        if "failed to map" in reason or "not permitted" in reason:
            advice = "set TMPDIR to a folder from which programs may be run"
        raise ArtifactError(f"{path} cannot be loaded: {reason}; {advice}") from error
    atexit.register(scratch.remove, folder)
    return library
