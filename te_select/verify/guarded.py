"""Memory between protected pages, with guards around an array, so that stray accesses show."""

import ctypes
import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt

from te_select.errors import suppress
from te_select.verify.reference import Array

Bytes = npt.NDArray[np.uint8]

PAGE = mmap.PAGESIZE
GUARD = 4096  # bytes on each side: further than any vector reaches
FILL = 0xA5  # the value of bytes that are not written
_PART = 1 << 24  # bytes of random data that are drawn at once
_PROT_NONE = 0
_libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """Memory for one array, which begins on a page until it is moved.

    Parameters
    ----------
    shape, dtype
        Of the array.

    Attributes
    ----------
    memory
        All bytes, including those of the guards.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self._shape = shape
        self._dtype = dtype
        self._size = math.prod(shape) * dtype.itemsize
        self._offset = 0
        self.memory = between_protected_pages(self._size + 2 * GUARD)

    def fill(self) -> None:
        """Make every byte `FILL`."""
        self.memory[:] = FILL

    def move(self, offset: int) -> None:
        """Move the array, with its bytes, to ``offset`` bytes from its first place."""
        if offset != self._offset:
            bytes_moved = self._inside().copy()
            self._offset = offset
            self._inside()[:] = bytes_moved

    @property
    def ends(self) -> tuple[int, int]:
        """The offsets at which a protected page lies right before the array, and right behind."""
        return -GUARD, self.memory.size - GUARD - self._size

    def array(self) -> Array:
        """The array."""
        return self._inside().view(self._dtype).reshape(self._shape)

    def touched(self) -> bool:
        """Whether a byte outside the array is not `FILL`."""
        start = GUARD + self._offset
        outside = (self.memory[:start], self.memory[start + self._size :])
        return any((part != FILL).any() for part in outside)

    def _inside(self) -> Bytes:
        start = GUARD + self._offset
        return self.memory[start : start + self._size]


def randomize(random: np.random.Generator, memory: Bytes) -> None:
    """Fill memory with random bits, part by part, so that little more memory is needed."""
    for start in range(0, memory.size, _PART):
        part = memory[start : start + _PART]
        words = random.integers(0, 2**64, -(-part.size // 8), np.uint64)
        part[...] = words.view(np.uint8)[: part.size]


def between_protected_pages(size: int) -> Bytes:
    """Whole pages of ``size`` bytes or more; an access right before or behind ends the process."""
    inside = -(-size // PAGE) * PAGE
    pages = mmap.mmap(-1, inside + 2 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # where the kernel has none
        pages.madvise(mmap.MADV_HUGEPAGE)  # as NumPy does for its large arrays
    memory = np.frombuffer(pages, np.uint8, inside, PAGE)
    for edge in (-PAGE, inside):
        address = ctypes.c_void_p(memory.ctypes.data + edge)
        if _libc.mprotect(address, ctypes.c_size_t(PAGE), _PROT_NONE) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    return memory
