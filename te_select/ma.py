"""numpy.ma, with te_select's where: ``te_select.ma.where``, or ``np.ma`` of `te_select.numpy`.

numpy.ma itself stays as it is.
"""

from typing import Any

import numpy as np
from numpy import ma
from numpy.ma import where as numpy_ma_where  # which a program may replace by ours

from te_select import selecting

_NO_VALUE = np._NoValue  # type: ignore[attr-defined]


def where(condition: Any, x: Any = _NO_VALUE, y: Any = _NO_VALUE) -> Any:
    """Select from masked arrays, as numpy.ma.where does.

    The result is masked where condition is, and where the operand selected is. The kernels of
    `te_select.where` select values and masks.

    Parameters
    ----------
    condition
        An array of any type, masked or not; nonzero is true. Without x and y, the result is
        ``numpy.ma.nonzero(condition)``.
    x, y
        Arrays, masked arrays or numbers that broadcast with condition; ``numpy.ma.masked``, where
        the result is masked. Those of a structured type go to ``numpy.ma.where``.

    Returns
    -------
    MaskedArray
        The values selected. Its mask is ``nomask`` if nothing is masked.

    Raises
    ------
    Exception
        Whatever numpy.ma.where raises.

    Notes
    -----
    ``numpy.ma.where``. ``te_select.where.stats()`` counts values and masks as calls.
    """
    if x is _NO_VALUE or y is _NO_VALUE:
        return numpy_ma_where(condition, x, y)
    x_data = ma.getdata(x)
    y_data = ma.getdata(y)
    if x_data.dtype.names or y_data.dtype.names:  # each field has a mask
        return numpy_ma_where(condition, x, y)
    if x is ma.masked:  # whose own value is a float64
        x_data = np.zeros((), y_data.dtype)
    elif y is ma.masked:
        y_data = np.zeros((), x_data.dtype)
    of_cond = ma.getmask(condition)
    cond = condition if of_cond is ma.nomask else _filled(condition, of_cond)
    values = selecting.where(cond, x_data, y_data)
    mask = ma.nomask
    if values.size:
        mask = _selected_mask(cond, of_cond, ma.getmask(x), ma.getmask(y))
    if mask is not ma.nomask and mask.shape != values.shape:
        mask = np.broadcast_to(mask, values.shape).copy()
    return ma.MaskedArray(values, mask)


def _filled(condition: Any, mask: Any) -> Any:
    """A cond whose masked elements are false."""
    if condition.dtype != np.bool_:
        return ma.filled(condition, False)
    return selecting.where(mask, False, ma.getdata(condition))


def _selected_mask(cond: Any, of_cond: Any, of_x: Any, of_y: Any) -> Any:
    """True where cond or the side selected is masked; nomask if that is nowhere."""
    mask = ma.nomask
    if of_x is not ma.nomask or of_y is not ma.nomask:
        mask = selecting.where(cond, of_x, of_y)
    if of_cond is not ma.nomask:
        mask = selecting.where(of_cond, True, mask)
    return mask if mask.any() else ma.nomask


where.__module__ = "te_select.ma"


def __getattr__(name: str) -> Any:
    """A name of numpy.ma's."""
    return getattr(ma, name)


def __dir__() -> list[str]:
    """List numpy.ma's names."""
    return dir(ma)
