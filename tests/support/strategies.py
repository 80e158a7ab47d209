"""Hypothesis strategies: workloads of every rule, and operands laid out in awkward ways."""

import math

import numpy as np
from hypothesis import strategies as st

from te_select import Workload
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support.operands import frozen, random, shifted

AWKWARD_EXTENTS = (1, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129)


@st.composite
def workloads(draw, dtypes=tuple(ELEMENT_TYPES)):
    """A workload that broadcasts, of up to rank 5; no operand has more than 10^5 elements."""
    rank = draw(st.integers(0, 5))
    out = []
    for _ in range(rank):
        most = max(1, 100_000 // math.prod(max(1, dim) for dim in out))  # an input may have no 0
        fitting = [e for e in (*AWKWARD_EXTENTS, 0, 1000, 4099) if e <= most]
        out.append(draw(st.sampled_from(fitting)))

    def operand(full, lead=0):
        return tuple(1 if draw(st.booleans()) else dim for dim in full[lead:])

    def cut(full):
        return operand(full, draw(st.integers(0, len(full))))

    rule = draw(st.sampled_from(["none", "numpy", "pdpd", "multidirectional"]))
    axis = -1
    cond, then, else_ = cut(out), cut(out), cut(out)
    if rule == "none":
        cond = then = else_ = tuple(out)
    elif rule == "numpy":
        cond = cut(np.broadcast_shapes(then, else_))
    elif rule == "pdpd":
        then = tuple(out)
        axis = draw(st.integers(-1, rank))
        if axis >= 0:
            end = draw(st.integers(axis, rank))
            cond, else_ = operand(out[:end], axis), operand(out[:end], axis)
    return Workload(cond, then, else_, draw(st.sampled_from(dtypes)), rule, axis)


def random_bits(rng, shape, dtype):
    """An array of random bits."""
    return random(shape, dtype, rng)


def random_cond(rng, shape):
    """A boolean array of random bytes: any nonzero byte is true."""
    size = int(np.prod(shape, dtype=np.int64))
    values = rng.integers(0, 256, size, np.uint8) * rng.integers(0, 2, size, np.uint8)
    return values.view(np.bool_).reshape(shape)


def operands(rng, workload):
    """Random cond, then and else_ of a workload without names."""
    sides = (workload.then_shape, workload.else_shape)
    then, else_ = (random_bits(rng, shape, workload.dtype) for shape in sides)
    return random_cond(rng, workload.cond_shape), then, else_


def laid_over(workload, operand, shape):
    """The shape of an operand with the unit axes that NumPy's own broadcasting needs.

    Of the rules themselves, not of `te_select.operator.broadcast`, which the tests are about.
    """
    if workload.auto_broadcast != "pdpd" or workload.axis == -1 or operand == "then":
        return shape  # aligned to the right, as NumPy does
    behind = len(workload.then_shape) - workload.axis - len(shape)
    return (*shape, *(1,) * behind)


def expected(workload, cond, then, else_):
    """NumPy's result, as raw bytes with a trailing axis of the element width."""
    width = workload.element.width
    truth = as_bytes(cond) != 0
    operands = [
        raw.reshape(*laid_over(workload, name, array.shape), raw.shape[-1])
        for name, array, raw in (
            ("cond", cond, truth),
            ("then", then, as_bytes(then)),
            ("else_", else_, as_bytes(else_)),
        )
    ]
    out = np.where(*operands)
    assert out.shape[-1] == width
    return out


def as_bytes(array):
    """The bytes of an array, with a trailing axis of the element width."""
    raw = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
    return raw.reshape(*array.shape, array.dtype.itemsize)


LAYOUTS = {
    "compact": lambda array: array,
    "reversed": lambda array: array[::-1].copy()[::-1],
    "sliced": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "transposed": np.asfortranarray,
    "misaligned": lambda array: shifted(array, 1),
    "read-only": lambda array: frozen(array.copy()),
}


def strided(array, how):
    """The same values in one of the `LAYOUTS`."""
    return LAYOUTS[how](array) if array.ndim else array
