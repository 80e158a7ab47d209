"""`te_select.where` for CuPy arrays: cupy.where, which selects on their device."""

from __future__ import annotations

from typing import Any

import cupy

from te_select.numpy_where.numpy_rules import check_out


def in_kind(*args: Any, out: Any = None) -> Any:
    """Select as cupy.where does, with NumPy's promotion.

    Parameters
    ----------
    args
        cond, or cond, x and y.
    out
        An array of the result's type and shape, or None.

    Returns
    -------
    cupy.ndarray
        out, or a new array on the device of the arrays.

    Raises
    ------
    TypeError
        If out has another element type, or is not a CuPy array.
    ValueError
        If out has another shape.
    """
    found = cupy.where(*args)
    if out is None:
        return found
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array of CuPy")
    check_out(out, found)
    out[...] = found
    return out
