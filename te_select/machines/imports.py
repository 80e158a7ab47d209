"""Importing tvm quickly."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def without_torch() -> Iterator[None]:
    """Keep tvm_ffi from importing torch, in a process that passes NumPy arrays only.

    Where torch is installed tvm_ffi imports it: tvm then took 2.7 s to import in the place of 0.9.
    """
    if "torch" in sys.modules or "tvm_ffi" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]  # Python's own sign for "not there"
    try:
        yield
    finally:
        del sys.modules["torch"]
