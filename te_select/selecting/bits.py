"""Recognizes booleans that pyarrow, polars and pandas store as bits.

Their own ways to NumPy go value by value, which takes 10x the time of the Select itself.
"""

from typing import Any

import numpy as np

from te_select.errors import asked, caught

Array = np.ndarray[Any, Any]


def without_bits(mask: Any) -> Any:
    """A mask that is stored as bits as an array; any other one as it is."""
    found = None if type(mask) is np.ndarray else find(mask)
    return mask if found is None else unpacked(*found)


def unpacked(buffer: Any, first: int, length: int) -> Array:
    """An array of the booleans that `find` has found."""
    held = np.frombuffer(buffer, np.uint8)[first // 8 : (first + length + 7) // 8]
    bits = np.unpackbits(held, bitorder="little").view(np.bool_)
    return bits[first % 8 :][:length]


def find(value: Any) -> tuple[Any, int, int] | None:
    """The bytes of a mask that is stored as bits, the place of its first one, and its length.

    The lowest bit of a byte is the first. None if a value is missing, or it is not stored so.
    """
    arrow = _in_arrow(value)
    kind = type(arrow).__name__
    if kind == "ChunkedArray":
        arrow = arrow.chunk(0) if arrow.num_chunks == 1 else arrow.combine_chunks()
        kind = type(arrow).__name__
    if kind != "BooleanArray" or not len(arrow) or arrow.null_count:
        return None
    return arrow.buffers()[1], arrow.offset, len(arrow)


def _in_arrow(value: Any) -> Any:
    """The array of pyarrow that holds a column of pyarrow, polars or pandas; else None."""
    library = type(value).__module__.partition(".")[0]
    if library == "pyarrow":
        return value
    if library == "polars" and str(asked(value, "dtype")) == "Boolean":
        try:
            return value.to_arrow()
        except caught(ModuleNotFoundError):  # polars goes without pyarrow, too
            return None
    if library == "pandas":
        held = asked(value, "array", value)
        if type(held).__name__ == "ArrowExtensionArray":
            return held.__arrow_array__()
    return None
