"""Imports, in a process of our own: the command line and the workers of a session."""

import atexit
import gc
import sys

_OBJECTS = 100_000  # between collections; Python's 700 made them a fifth of importing tvm


def quickly() -> None:
    """Let tvm be imported quickly, in a process that passes only NumPy arrays.

    If torch is installed, tvm_ffi imports it: importing tvm took 2.7 s instead of 0.9 s. The last
    collection, at the end of the process, took 0.5 s.
    """
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    if not sys.modules.keys() & {"torch", "tvm_ffi"}:
        sys.modules["torch"] = None  # type: ignore[assignment]  # Python's own sign for "not there"
