"""Select for NumPy arrays of any shapes, by kernels that are compiled when they are needed."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from te_select.errors import DTypeError
from te_select.operator.access import access_pattern
from te_select.operator.dtypes import element_type
from te_select.operator.workload import Workload

Array = NDArray[Any]

_CARRIERS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


def select(cond: Array, then: Array, else_: Array) -> Array:
    """Select element by element: ``out[i] = then[i] if cond[i] else else_[i]``.

    The three shapes broadcast to each other. Calls with the same access pattern share a kernel,
    whatever their sizes. Element types of one width share it, too, because bits are copied.

    Parameters
    ----------
    cond
        A boolean array.
    then, else_
        Arrays of one element type.

    Returns
    -------
    ndarray
        A new array of that type.

    Raises
    ------
    BroadcastError
        If the shapes do not broadcast.
    DTypeError
        If cond is not boolean, if then and else have different types, or if no kernel has their
        type.
    """
    if cond.dtype != np.bool_:
        raise DTypeError(f"cond is {cond.dtype}; expected bool")
    if then.dtype != else_.dtype:
        raise DTypeError(f"then is {then.dtype} and else is {else_.dtype}; expected one type")
    dtype = element_type(then.dtype)
    shapes = (cond.shape, then.shape, else_.shape)
    workload = Workload(*shapes, dtype.name, "multidirectional")
    loops = access_pattern(Workload(*shapes, "uint8", "multidirectional")).loops
    kernel = _kernel(tuple(loop.movers for loop in loops), dtype.width)
    carrier = np.dtype(_CARRIERS[dtype.width])
    operands = [
        np.ascontiguousarray(array).reshape(
            [loop.bound({}) if letter in loop.movers else 1 for loop in loops]
        )
        for letter, array in zip("cte", (cond, then, else_), strict=True)
    ]
    carried = [operands[0], operands[1].view(carrier), operands[2].view(carrier)]
    out: Array = kernel(*carried)
    return out.view(then.dtype).reshape([int(dim) for dim in workload.out_shape])


@functools.cache
def _kernel(movers: tuple[str, ...], width: int) -> Any:
    """A kernel for loops of any extents; each item names the operands that move along a loop."""
    import te_select  # noqa: PLC0415 - imports tvm

    cond, then, else_ = (
        [f"n{i}" if letter in moving else 1 for i, moving in enumerate(movers)] for letter in "cte"
    )
    workload = Workload(cond, then, else_, _CARRIERS[width], "multidirectional")
    return te_select.compile(workload)
