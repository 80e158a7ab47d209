"""The images of a process: shared libraries opened by tvm-ffi, one for each content."""

from __future__ import annotations

import ctypes
import os
import threading
import warnings
from pathlib import Path

import tvm_ffi

from te_select.runtime import sealed
from te_select.runtime.stored import Stored

_images: dict[str, tuple[tvm_ffi.Module, ctypes.CDLL]] = {}
_lock = threading.Lock()
TESTED = "0.1.14"
"""The release of apache-tvm-ffi that every test has run with; pyproject.toml asks for it."""


def warn_of_untested(version: str) -> None:
    """Warn where this is another release of apache-tvm-ffi than the tested one.

    Warns
    -----
    RuntimeWarning
        If it is.
    """
    if version != TESTED and not version.startswith(f"{TESTED}."):
        warnings.warn(
            f"apache-tvm-ffi is {version}; te-select was tested with {TESTED}, and expects it",
            RuntimeWarning,
            stacklevel=2,
        )


warn_of_untested(tvm_ffi.__version__)


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
        if library.sha256 not in _images:
            # Code of the first format cannot return its manifest.
            digest = "" if library.is_first_format else library.sha256
            loaded = sealed.load(library.image, digest, path)
            _images[library.sha256] = open_again(loaded), loaded
        return _images[library.sha256][0]


def address(library: Stored, symbol: str) -> int:
    """Where a function of a loaded library lies; 0 if it has no such function."""
    with _lock:
        _, loaded = _images[library.sha256]
        try:
            return ctypes.cast(loaded[symbol], ctypes.c_void_p).value or 0
        except AttributeError:
            return 0


def open_again(library: ctypes.CDLL) -> tvm_ffi.Module:
    """Open by tvm-ffi what `te_select.runtime.sealed` has loaded."""
    # The loader by its name, as the file's own may have any ending.
    loader = tvm_ffi.get_global_func("ffi.Module.load_from_file.so")
    module: tvm_ffi.Module = loader(library._name, "so")
    return module
