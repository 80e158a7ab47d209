"""The layout that torch gives to a new result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def strides(shape: Sequence[int], inputs: Sequence[Any]) -> list[int]:
    """The strides, in elements, of what torch makes of inputs that broadcast to a shape.

    Parameters
    ----------
    shape
        The shape of the result.
    inputs
        The tensors, in the order of torch's arguments.

    Returns
    -------
    list of int
        Those of compact memory. Its axes are in the order of the first input that has one: an axis
        along which an input is broadcast says nothing.

    Notes
    -----
    ``TensorIterator`` of ATen, ``reorder_dimensions``.
    """
    steps = [_steps(shape, tensor) for tensor in inputs]
    order = [*range(len(shape))][::-1]  # from the innermost axis of the result outwards
    for end in range(1, len(order)):
        at = end
        for before in range(end - 1, -1, -1):
            found = _compare(order[before], order[at], shape, steps)
            if found < 0:
                break
            if found > 0:
                order[before], order[at] = order[at], order[before]
                at = before
    made, step = [0] * len(shape), 1
    for axis in order:
        made[axis] = step
        step *= shape[axis]
    return made


def _steps(shape: Sequence[int], tensor: Any) -> list[int]:
    """The strides of a tensor along the axes of the result; 0 where it is broadcast."""
    missing = [0] * (len(shape) - tensor.ndim)
    own = zip(tensor.shape, tensor.stride(), shape[len(missing) :], strict=True)
    return missing + [0 if extent == 1 != to else step for extent, step, to in own]


def _compare(one: int, other: int, shape: Sequence[int], steps: Sequence[Sequence[int]]) -> int:
    """Positive if an axis is to be further out than another, negative if further in; else 0."""
    for step in steps:
        if not (step[one] and step[other]):
            continue
        if step[one] != step[other]:
            return step[one] - step[other]
        if shape[one] > shape[other]:
            return 1
    return 0
