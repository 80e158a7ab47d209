"""Memory between two protected pages, with known bytes around the operand in it."""

import numpy as np

from te_select.verify.guarded import PAGE, READ, WRITE, Bytes, between_protected_pages, protect


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
        self.memory: Bytes = between_protected_pages(size + PAGE)
        self.memory[...] = rng.integers(0, 256, self.memory.size, np.uint8)
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
            before = self._before[first:last]
            now = self.memory[first:last]
            if not np.array_equal(before, now):
                return first + int(np.argmax(before != now)) - start
        return None

    def freeze(self) -> None:
        """Make every write end the process."""
        protect(self.memory.ctypes.data, self.memory.size, READ)

    def thaw(self) -> None:
        """Allow writing again."""
        protect(self.memory.ctypes.data, self.memory.size, READ | WRITE)
