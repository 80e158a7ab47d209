"""Imports of other packages that are missing, that torch breaks, or that take long."""

import atexit
import contextlib
import gc
import sys
import traceback
from collections.abc import Iterator

from te_select.errors import NotInstalledError, SelectError, ToolchainError, caught

_OBJECTS = 100_000  # between collections; Python's 700 made them a fifth of importing tvm
_DISTRIBUTIONS = {"tvm": "apache-tvm", "tvm_ffi": "apache-tvm-ffi"}  # that are named otherwise


def quickly() -> None:
    """Let tvm be imported quickly, in a process that passes only NumPy arrays.

    If torch is installed, tvm_ffi imports it: importing tvm took 2.7 s instead of 0.9 s. The last
    collection, at the end of the process, took 0.5 s.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    if not sys.modules.keys() & {"torch", "tvm_ffi"}:
        sys.modules["torch"] = None  # type: ignore[assignment]  # Python's own sign for "not there"


def not_installed(what: str, error: ModuleNotFoundError) -> NotInstalledError:
    """The error of something whose module is not there."""
    needed = f"{what} needs {error.name}, which is not installed"
    return NotInstalledError(f"{needed}; {_how_to_install(str(error.name).partition('.')[0])}")


def _how_to_install(module: str) -> str:
    """How a module is installed; an index may have another's te-select (SECURITY.md)."""
    if module == "te_select":
        return "install the wheel of te-select by its path, or a clone of it"
    return f"pip install {_DISTRIBUTIONS.get(module, module)}"


@contextlib.contextmanager
def broken_torch_explained() -> Iterator[None]:
    """Say so if tvm-ffi cannot be imported because of torch, which it imports if it finds it.

    Torch that fails with an ImportError does no harm, and tvm-ffi has no switch for the others.
    """
    try:
        yield
    except SelectError:
        raise
    except caught(Exception) as error:
        importing = False
        for frame, _ in traceback.walk_tb(error.__traceback__):
            module = str(frame.f_globals.get("__name__"))
            if module == "tvm_ffi" and frame.f_code.co_name == "<module>":
                importing = True
            if importing and ("torch" in module or "torch" in str(error)):
                raise ToolchainError(
                    f"torch is installed but broken ({type(error).__name__}: {error}), and tvm-ffi "
                    "imports it with itself; install torch again, or uninstall it"
                ) from error
        raise
