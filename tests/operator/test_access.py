"""The access pattern: merged loops, which operands move, bytes moved."""

import itertools
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pytest import approx, mark

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.operator.test_broadcast import related_shapes
from tests.support import shapes

workloads = st.builds(
    lambda shapes, dtype: Workload(*shapes, dtype, "multidirectional"),
    related_shapes(),
    st.sampled_from(list(ELEMENT_TYPES)),
)


def carried_shapes(workload):
    """Shapes of cond, then, else and out in carried elements; 16 bytes are a pair, not in cond."""
    pair = (2,) if workload.element.width == 16 else ()
    branches = (workload.then_shape, workload.else_shape, workload.out_shape)
    lone = (1,) if pair else ()
    return (*workload.cond_shape, *lone), *((*shape, *pair) for shape in branches)


def movers(workload):
    return [loop.movers for loop in access_pattern(workload).loops]


@given(workloads)
def test_linear_loops_reach_the_elements_that_numpy_reaches(workload):
    """Walk the merged nest with one running offset per operand, as a compact array is walked."""
    pattern = access_pattern(workload)
    extents = [loop.extent or 0 for loop in pattern.loops]
    *shapes, out_shape = carried_shapes(workload)
    for letter, shape in zip("cte", shapes, strict=True):
        strides, step = [], 1
        for loop, extent in zip(reversed(pattern.loops), reversed(extents), strict=True):
            strides.append(step if letter in loop.movers else 0)
            step *= extent if letter in loop.movers else 1
        walked = [
            sum(i * s for i, s in zip(at, reversed(strides), strict=True))
            for at in itertools.product(*map(range, extents))
        ]
        elements = np.arange(prod(shape)).reshape(shape)
        assert walked == np.broadcast_to(elements, out_shape).ravel().tolist()


@given(workloads)
def test_loops_cover_the_axes_and_bytes_count_every_array_once(workload):
    pattern = access_pattern(workload)
    width = workload.element.width
    covered = [axis for loop in pattern.loops for axis in loop.axes]
    out = carried_shapes(workload)[-1]
    assert covered == [axis for axis, dim in enumerate(out) if dim != 1]
    assert all(a != b for a, b in itertools.pairwise(movers(workload)))
    assert pattern.elements == prod(out)
    if pattern.elements:
        sides = (workload.then_shape, workload.else_shape, workload.out_shape)
        cond = prod(workload.cond_shape)
        then, else_, out = map(prod, sides)
        read = then + else_ if cond > 1 else max(then, else_)
        assert pattern.bytes_moved() == cond + width * (read + out)


@mark.parametrize(
    "of, dtype, expected",
    [
        ("2,3,2,3,2,3,2,3,2,3,2,3 " * 3, "float32", f"{6**6}:cte"),
        ("4,1 4,3 ()", "complex128", "4:ct x 3:t x 2:te"),  # cond decides both of a pair
        ("4,1 4,3 1,3", "complex128", "4:ct x 6:te"),
        ("() () ()", "float32", "a single element"),
        ("4,1 1,8 1", "float32", "4:c x 8:t"),
        ("4,1,2,1 4,3,2,5 ()", "float32", "4:ct x 3:t x 2:ct x 5:t"),
    ],
)
def test_known_patterns(of, dtype, expected):
    pattern = access_pattern(Workload(*shapes(of), dtype, auto_broadcast="multidirectional"))
    assert (str(pattern), pattern.width) == (expected, 8 if dtype == "complex128" else 4)


def test_named_dims_merge_like_sizes():
    pattern = access_pattern(Workload((1, "n", 4), ("b", "n", 4), (), "float64"))
    assert str(pattern) == "b:t x n*4:ct"
    assert pattern.elements is None
    assert pattern.loops[1].bound({"n": 3, "b": 2}) == 12
    assert pattern.bytes_moved({"n": 3, "b": 2}) == 12 + 8 * (24 + 1 + 24)


@mark.parametrize(
    "of, block, density, read",
    [
        ("64,64 64,64 64,64", 1, 0.5, 2.0),  # every line of both sides has some of it
        ("64,64 64,64 64,64", 32, 0.5, 1.0),
        ("64,64 64,64 64,64", 32, 0.1, 1.0),
        ("64,1 64,64 64,64", 1, 0.5, 1.0),  # whole rows are of one side
        ("64,1 64,64 ()", 1, 0.25, 0.25),
        ("64,1 64,16 64,16", 1, 0.5, 2.0),  # a row is a line that is cut somewhere
        ("1,64 64,64 64,64", 1, 0.5, 2.0),
    ],
)
def test_bytes_that_are_needed_leave_out_what_is_not_selected(of, block, density, read):
    workload = Workload(*shapes(of))
    pattern = access_pattern(workload)
    out = prod(workload.out_shape)
    cond = prod(workload.cond_shape)
    side = 4 * prod(workload.then_shape)
    scalar = pattern.bytes_moved() - cond - 4 * out - side * (2 if workload.else_shape else 1)
    assert pattern.bytes_needed(density, block) == approx(
        cond + 4 * out + read * side + scalar, abs=8
    )
