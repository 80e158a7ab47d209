"""The layout that torch gives to a new result."""

import functools
from collections.abc import Sequence
from typing import Any

import torch

_CHANNELS_LAST = (1, 3, 2, 0)  # the axes of four, innermost first


def strides(shape: Sequence[int], inputs: Sequence[Any]) -> Sequence[int]:
    """The strides, in elements, of what torch makes of inputs that broadcast to a shape.

    Parameters
    ----------
    shape
        The shape of the result, which has elements.
    inputs
        The tensors, in the order of torch's arguments.

    Returns
    -------
    sequence of int
        Those of compact memory. Its axes are in the order of the first input that has one: a
        broadcast axis gives no order.

    Notes
    -----
    ``TensorIterator`` of ATen, ``reorder_dimensions`` and ``fast_set_up``. The latter is for inputs
    of one shape. Only axes of extent 1 tell it from the former.
    """
    made = _compact(shape, _common_order(shape, inputs))
    if any(tensor.shape != shape for tensor in inputs):
        return made
    if all(tensor.is_contiguous() for tensor in inputs):
        return _in_c_order(shape)
    last = torch.channels_last
    if len(shape) == len(_CHANNELS_LAST) and all(
        tensor.is_contiguous(memory_format=last) for tensor in inputs
    ):
        return _compact(shape, _CHANNELS_LAST)
    first = inputs[0].stride()
    alike = all(tensor.stride() == first for tensor in inputs)
    dense = all(extent == 1 or a == b for extent, a, b in zip(shape, made, first, strict=True))
    return first if alike and dense else made


def _common_order(shape: Sequence[int], inputs: Sequence[Any]) -> list[int]:
    """The axes, innermost first, in the order that the inputs have in memory."""
    steps = [_steps(shape, tensor) for tensor in inputs]
    order = [*range(len(shape))][::-1]
    for end in range(1, len(order)):
        at = end
        for before in range(end - 1, -1, -1):
            found = _compare(order[before], order[at], shape, steps)
            if found < 0:
                break
            if found > 0:
                order[before], order[at] = order[at], order[before]
                at = before
    return order


def is_ordinary(tensor: Any) -> bool:
    """Whether a tensor's strides are those of C order, also along axes of extent 1."""
    return bool(tensor.stride() == _in_c_order(tensor.shape))


@functools.lru_cache(4096)  # they are found in a tenth of the time
def _in_c_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(_compact(shape, range(len(shape))[::-1]))


def _compact(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """The strides of compact memory, whose axes are in this order from the innermost outwards."""
    made = [0] * len(shape)
    step = 1
    for axis in order:
        made[axis] = step
        step *= shape[axis]
    return made


def _steps(shape: Sequence[int], tensor: Any) -> list[int]:
    """The strides of a tensor along the axes of the result; 0 if it is broadcast."""
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
