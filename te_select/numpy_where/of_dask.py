"""`te_select.where` for dask arrays: dask.array.where, whose blocks kernels select."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.array.core import elemwise

from te_select.errors import ArgumentError
from te_select.numpy_where.call import where
from te_select.numpy_where.numpy_rules import has_own_rule


def in_kind(*args: Any, out: Any = None) -> Any:
    """Select as dask.array.where does, when the result is computed.

    Parameters
    ----------
    args
        cond, or cond, x and y.
    out
        None, because dask arrays are never written.

    Returns
    -------
    dask.array.Array
        With the shape, the chunks and the type of what dask.array.where returns. NotImplemented if
        an operand of another library has a rule of its own.

    Raises
    ------
    ArgumentError
        If out is given.
    Exception
        Whatever dask.array.where raises.
    """
    if out is not None:
        raise ArgumentError("out has no meaning for dask, whose arrays are lazy; leave it out")
    if any(has_own_rule(each) and not isinstance(each, da.Array) for each in args):
        return NotImplemented  # numpy.where asks them in its order
    lacks_a_side = len(args) != 3 or any(each is None for each in args[1:])  # noqa: PLR2004
    if lacks_a_side or np.isscalar(args[0]):
        return da.where(*args)
    return elemwise(where, *args)


def common_call(*_args: Any, **_options: Any) -> None:
    """Leave every call to `in_kind`, which may leave it to numpy.where."""
