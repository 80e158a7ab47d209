"""Booleans that pyarrow, polars and pandas store as bits, as arrays of NumPy.

Their own ways to NumPy go value by value, which takes 10x the time of the Select itself.
"""

from typing import Any

import numpy as np

from te_select.errors import asked, suppress

Array = np.ndarray[Any, Any]


def without_bits(mask: Any) -> Any:
    """A mask that is stored as bits as an array; any other one as it is."""
    found = None if type(mask) is np.ndarray else unpacked(mask)
    return mask if found is None else found


def unpacked(value: Any) -> Array | None:
    """Booleans stored as bits, of which none is missing, as an array; else None."""
    arrow = _in_arrow(value)
    if type(arrow).__name__ not in ("ChunkedArray", "BooleanArray"):
        return None
    if not len(arrow) or arrow.null_count or str(arrow.type) != "bool":
        return None
    found = [_unpacked(chunk) for chunk in getattr(arrow, "chunks", [arrow]) if len(chunk)]
    return found[0] if len(found) == 1 else np.concatenate(found)


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


def _unpacked(array: Any) -> Array:
    """The bits of an array of pyarrow, from its offset on."""
    first = array.offset
    count = len(array)
    held = np.frombuffer(array.buffers()[1], np.uint8)[first // 8 : (first + count + 7) // 8]
    return np.unpackbits(held, bitorder="little").view(np.bool_)[first % 8 :][:count]
