"""Memory with guards on both sides, so that a stray store is detected."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from te_select.checking.reference import Array

Bytes = npt.NDArray[np.uint8]

GUARD = 4096  # bytes on each side: a page, further than any vector reaches
FILL = 0xA5  # the value of bytes that are not written


class Guarded:
    """Memory for one array.

    Parameters
    ----------
    size
        Bytes of the array.
    alignment
        The address is a multiple of so many bytes, if the array is not moved. A divisor of `GUARD`.

    Attributes
    ----------
    memory
        All bytes, including those of the guards.
    """

    def __init__(self, size: int, alignment: int) -> None:
        self._size = size
        self.memory = aligned_bytes(size + 2 * GUARD, alignment)

    def fill(self) -> None:
        """Make every byte `FILL`."""
        self.memory[:] = FILL

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], offset: int = 0) -> Array:
        """The array, moved by ``offset`` bytes, fewer than `GUARD`."""
        start = GUARD + offset
        end = start + math.prod(shape) * dtype.itemsize
        return self.memory[start:end].view(dtype).reshape(shape)

    def touched(self, offset: int = 0) -> bool:
        """Whether a byte outside the array is not `FILL`."""
        start = GUARD + offset
        outside = (self.memory[:start], self.memory[start + self._size :])
        return any(bool((part != FILL).any()) for part in outside)


def aligned_bytes(size: int, alignment: int) -> Bytes:
    """Uninitialized bytes whose address is a multiple of ``alignment``."""
    memory = np.empty(size + alignment, np.uint8)
    start = -memory.ctypes.data % alignment
    return memory[start : start + size]
