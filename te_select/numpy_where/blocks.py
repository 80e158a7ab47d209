"""Selects in blocks of the result, which stay in the cache, as does what is converted."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

BLOCK = 1 << 18  # bytes of the result; half and twice as many are as fast

Array = np.ndarray[Any, Any]


def select(
    pairs: Sequence[tuple[Array, Array]], default: Array, result: Array, elements: int
) -> list[int]:
    """Select from pairs of cond and choice, of which the last one that is true counts.

    Parameters
    ----------
    pairs, default
        They broadcast to the result. An operand of another type than the result's is converted,
        and then none shares memory with the result.
    result
        The array to write.
    elements
        The most of a block.

    Returns
    -------
    list of int
        The elements of each block.
    """
    default = np.broadcast_to(default, result.shape)  # one operand of a Select has its shape
    given = [*itertools.chain(*pairs), default]
    if result.size <= elements:
        return [_in_place(given, result)]
    axes, sizes = np.argsort([-abs(step) for step in result.strides], kind="stable"), []
    wide = [np.broadcast_to(each, result.shape).transpose(axes) for each in given]
    turned = result.transpose(axes)
    for part in _parts(turned.shape, elements):
        sizes.append(_in_place([each[part] for each in wide], turned[part]))
    return sizes


def _parts(shape: tuple[int, ...], most: int) -> Iterator[tuple[Any, ...]]:
    """Cut a shape in C order: indices of parts with at most so many elements."""
    axis = next(k for k in range(len(shape)) if math.prod(shape[k + 1 :]) <= most)
    step = most // math.prod(shape[axis + 1 :])
    for index in np.ndindex(*shape[:axis]):
        yield from ((*index, slice(i, i + step)) for i in range(0, shape[axis], step))


def _in_place(given: Sequence[Array], out: Array) -> int:
    """Select from the first pair, and replace what is there by the others; the last is default."""
    from te_select.numpy_where import where  # noqa: PLC0415 - it imports this module

    *pairs, held = given
    for cond, choice in zip(pairs[::2], pairs[1::2], strict=True):
        if held.dtype != out.dtype:
            held = _copied(held, out)
        is_free = choice.dtype != out.dtype and not np.may_share_memory(held, out)
        side = _copied(choice, out) if is_free else choice.astype(out.dtype, copy=False)
        where(cond.astype(bool, copy=False), side, held, out=out)
        held = out
    return out.size


def _copied(side: Array, out: Array) -> Array:
    np.copyto(out, side, casting="unsafe")
    return out
