"""`te_select.copyto` and `te_select.putmask`: numpy's, by kernels in place where these serve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import copyto as numpy_copyto  # which a program may replace by ours
from numpy import putmask as numpy_putmask

from te_select.numpy_where.bits import without_bits
from te_select.numpy_where.call import where as select
from te_select.runtime.call.extension import extension

_EXACT = 1 << 53  # NumPy makes a float of an int before it makes a shorter one of that


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Copy values to an array where a mask is true, as numpy.copyto does.

    Kernels do it if dst and src have one type, or src is a number. All other calls go to
    ``numpy.copyto`` as they stand.

    Parameters
    ----------
    dst
        The array to write.
    src
        An array or a number that broadcasts to dst.
    casting
        Which conversions are allowed.
    where
        Boolean, and broadcasts to dst. What is not selected stays.

    Raises
    ------
    Exception
        Whatever numpy.copyto raises.

    Notes
    -----
    ``numpy.copyto``.
    """
    mask = without_bits(where)
    if str(casting) not in ("same_kind", "unsafe") or not _replaced(dst, mask, src):
        numpy_copyto(dst, src, casting=casting, where=mask)


def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Replace elements of an array where a mask is true, as numpy.putmask does.

    Kernels do it if a and values have one type, or values is a number. All other calls go to
    ``numpy.putmask`` as they stand.

    Parameters
    ----------
    a
        The array to write.
    mask
        Boolean, of the size of a.
    values
        An array or a number. A shorter array is repeated along a in C order.

    Raises
    ------
    Exception
        Whatever numpy.putmask raises.

    Notes
    -----
    ``numpy.putmask``.
    """
    mask = without_bits(mask)
    if not _put(a, mask, values):
        numpy_putmask(a, mask, values)


def _put(a: Any, mask: Any, values: Any) -> bool:
    """Replace by kernels; false if none serves the call."""
    if not type(a) is type(mask) is np.ndarray or mask.shape != a.shape:
        return False
    if not isinstance(values, np.ndarray) or values.shape == a.shape:
        return _replaced(a, mask, values)
    if not (a.flags.c_contiguous and values.size) or a.size % values.size:
        return False
    rows = -1, values.size  # they are repeated along a
    return _replaced(a.reshape(rows), mask.reshape(rows), values.reshape(-1))


def _replaced(dst: Any, mask: Any, src: Any) -> bool:
    """Replace elements by a kernel; false if none serves the call as NumPy's function does it."""
    if type(mask) is not np.ndarray or mask.dtype != np.bool_ or not isinstance(dst, np.ndarray):
        return False
    if isinstance(src, (np.ndarray, np.generic)):
        if src.dtype != dst.dtype:
            return False
    elif type(src) is not float and not (type(src) is int and -_EXACT <= src <= _EXACT):
        return False
    if extension.plan(mask, src, dst, dst)[0] != "none":
        return False
    select(mask, src, dst, out=dst)
    return True
