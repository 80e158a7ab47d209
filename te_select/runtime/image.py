"""Shared libraries loaded from bytes: exactly the checked bytes run, whatever happens to the file.

The bytes go into memory that has a file descriptor (memfd) and is sealed against changes. If such
memory cannot be executed, they go into a private copy. A process has one image per content.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import os
import threading
from pathlib import Path
from typing import TypeAlias

import tvm_ffi

from te_select.errors import ArtifactError
from te_select.runtime import scratch
from te_select.runtime.stored import Stored

PRIVATE_COPY = "TE_SELECT_PRIVATE_COPY"
"""If set to any value, images are files, so that profilers such as perf can read their symbols."""
_LOCATOR = "te_select_manifest"  # the function that returns the address of an image's manifest
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
_LONGEST_NAME = 200  # bytes of a memfd's name; the system takes 249

_Opened: TypeAlias = tuple[tvm_ffi.Module, str]  # and the path that it was opened by
_images: dict[str, _Opened] = {}
_handles: dict[str, ctypes.CDLL] = {}
_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock  # noqa: PLW0603 - a forked child needs a new one: its parent's may be held
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def load(library: Stored, path: Path) -> tvm_ffi.Module:
    """Load a library from its bytes.

    Parameters
    ----------
    library
        The library, which was checked.
    path
        The file from which it was read, for names and messages.

    Returns
    -------
    tvm_ffi.Module
        The library; it stays loaded until the process ends.

    Raises
    ------
    ArtifactError
        If the system cannot load it.
    """
    with _lock:
        module = _images.get(library.sha256)
        if module is None:
            if not library.is_first_format:  # code of the first format cannot return its manifest
                module = _from_memory(library.image, library.sha256, path)
            if module is None:
                module = _from_copy(library.image, path)
            _images[library.sha256] = module
        return module[0]


def address(library: Stored, symbol: str) -> int:
    """Where a function of a loaded library lies; 0 where that cannot be told."""
    with _lock:
        try:
            handle = _handles.get(library.sha256)
            if handle is None:
                handle = _handles[library.sha256] = ctypes.CDLL(_images[library.sha256][1])
            return ctypes.cast(handle[symbol], ctypes.c_void_p).value or 0
        except (AttributeError, KeyError, OSError):
            return 0


def open_again(library: ctypes.CDLL) -> tvm_ffi.Module:
    """Open by tvm-ffi what `te_select.runtime.bare` has loaded."""
    return _dlopen(library._name)


def _from_memory(image: bytes, sha256: str, path: Path) -> _Opened | None:
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
        opened = f"/proc/{os.getpid()}/fd/{handle}"
        module = _dlopen(opened)
    except (OSError, RuntimeError):
        os.close(handle)
        return None
    if _digest_in_memory(module) != sha256:
        # The loader takes equal paths for equal files, and somebody closed a descriptor of ours.
        os.close(handle)
        return None
    return module, opened  # the descriptor stays open: its number is the library's name


def _digest_in_memory(module: tvm_ffi.Module) -> str:
    """The digest that a loaded library holds."""
    try:
        address = module.get_function(_LOCATOR)()
    except (AttributeError, RuntimeError):
        return ""
    head = len('{"sha256": "')
    return ctypes.string_at(address + head, 64).decode("ascii", "replace")


def _from_copy(image: bytes, path: Path) -> _Opened:
    """Load a file of our own, which lies in a folder of its own until the process ends."""
    try:
        folder = scratch.make(len(image) + scratch.ROOM)
    except scratch.NoRoomError as error:
        raise scratch.NoRoomError(f"{path} cannot be loaded: {error}") from error
    try:
        copy = folder / path.name
        copy.write_bytes(image)
        copy.chmod(0o500)
        module = _dlopen(str(copy))
    except (OSError, RuntimeError) as error:
        scratch.remove(folder)
        reason = " ".join(str(error).split()).replace(str(folder), str(path.parent))
        raise ArtifactError(f"{path} cannot be loaded: {reason}; {_advice(reason)}") from error
    atexit.register(scratch.remove, folder)
    return module, str(copy)


def _advice(reason: str) -> str:
    if "libgomp" in reason:  # libraries that te-select 0.1 made need it
        return "install GCC's OpenMP runtime (Debian: apt install libgomp1)"
    if "failed to map" in reason or "not permitted" in reason:
        return "set TMPDIR to a folder from which programs may be run"
    return "export it again for this machine"


def _dlopen(path: str) -> tvm_ffi.Module:
    """Open a shared library by tvm-ffi; the file's name may have any ending."""
    module: tvm_ffi.Module = _loader()(path, "so")
    return module


def _loader() -> tvm_ffi.Function:
    return tvm_ffi.get_global_func("ffi.Module.load_from_file.so")
