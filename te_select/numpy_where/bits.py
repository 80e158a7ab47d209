"""Recognizes booleans that pyarrow, polars and pandas store as bits.

Their own ways to NumPy go value by value, which takes 10x the time of the Select itself.
"""

from typing import Any, NamedTuple

import numpy as np

from te_select.errors import asked, suppress

Array = np.ndarray[Any, Any]


class Bits(NamedTuple):
    """Booleans that are stored as bits, the lowest of a byte first.

    Parameters
    ----------
    buffer
        The bytes.
    first, length
        The place of the first boolean, and how many there are.
    """

    buffer: Any
    first: int
    length: int

    def unpacked(self) -> Array:
        """An array of booleans."""
        held = np.frombuffer(self.buffer, np.uint8)
        held = held[self.first // 8 : (self.first + self.length + 7) // 8]
        bits = np.unpackbits(held, bitorder="little").view(np.bool_)
        return bits[self.first % 8 :][: self.length]


def without_bits(mask: Any) -> Any:
    """A mask that is stored as bits as an array; any other one as it is."""
    found = None if type(mask) is np.ndarray else find(mask)
    return mask if found is None else found.unpacked()


def find(value: Any) -> Bits | None:
    """The bits of a mask of which no value is missing; None if it is not stored as bits."""
    arrow = _in_arrow(value)
    if type(arrow).__name__ == "ChunkedArray":
        arrow = arrow.chunk(0) if arrow.num_chunks == 1 else arrow.combine_chunks()
    if type(arrow).__name__ != "BooleanArray" or not len(arrow) or arrow.null_count:
        return None
    return Bits(arrow.buffers()[1], arrow.offset, len(arrow))


def _in_arrow(value: Any) -> Any:
    """The array of pyarrow that holds a column of pyarrow, polars or pandas; else None."""
    library = type(value).__module__.partition(".")[0]
    if library == "pyarrow":
        return value
    if library == "polars" and str(asked(value, "dtype")) == "Boolean":
        with suppress(ModuleNotFoundError):  # polars goes without pyarrow, too
            return value.to_arrow()
    if library == "pandas":
        held = asked(value, "array", value)
        if type(held).__name__ == "ArrowExtensionArray":
            return held.__arrow_array__()
    return None
