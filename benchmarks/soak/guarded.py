"""Memory between two protected pages, with known bytes around the operand in it."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

PAGE = mmap.PAGESIZE
_NOTHING, _READ, _WRITE = 0, 1, 2  # PROT_NONE, PROT_READ, PROT_WRITE
_libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """Memory for an operand.

    Parameters
    ----------
    size
        Bytes that it must hold. There is room for one more page, so that they can begin anywhere.
    rng
        Source of the bytes in it.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        inside = (-(-size // PAGE) + 1) * PAGE
        whole = np.frombuffer(mmap.mmap(-1, inside + 2 * PAGE), np.uint8)
        self.memory: Bytes = whole[PAGE:-PAGE]
        self.memory[...] = rng.integers(0, 256, inside, np.uint8)
        self._address = whole.ctypes.data + PAGE
        _protect(self._address - PAGE, PAGE, _NOTHING)
        _protect(self._address + inside, PAGE, _NOTHING)
        self._before = self.memory

    def start(self, rng: np.random.Generator, size: int, align: int) -> int:
        """Choose where ``size`` bytes begin: at an end, near one or anywhere, but aligned."""
        room = (self.memory.size - size) // align
        near = int(rng.integers(min(room, 64) + 1))
        places = (0, room, near, room - near, int(rng.integers(room + 1)))
        place = places[int(rng.integers(len(places)))]
        return place * align

    def remember(self) -> None:
        """Remember the bytes as they are now, for `stray`."""
        self._before = self.memory.copy()

    def stray(self, start: int, size: int) -> int | None:
        """The first changed byte outside ``size`` bytes from ``start``, counted from ``start``."""
        for first, last in ((0, start), (start + size, self.memory.size)):
            before, now = self._before[first:last], self.memory[first:last]
            if not np.array_equal(before, now):
                return first + int(np.argmax(before != now)) - start
        return None

    def freeze(self) -> None:
        """Make every write end the process."""
        _protect(self._address, self.memory.size, _READ)

    def thaw(self) -> None:
        """Allow writing again."""
        _protect(self._address, self.memory.size, _READ | _WRITE)


def _protect(address: int, size: int, allowed: int) -> None:
    if _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), allowed) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
