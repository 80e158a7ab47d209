"""Calls of kernels of any kind of machine with NumPy arrays."""

from __future__ import annotations

from typing import Any

from te_select import kinds
from te_select.runtime.call.kernel import Kernel


def with_numpy(kernel: Kernel) -> Any:
    """The kernel as a callable that takes NumPy arrays and writes into ``out``."""
    adapter = kinds.kind(kernel.kind).with_numpy
    return kinds.load(adapter)(kernel) if adapter else kernel
