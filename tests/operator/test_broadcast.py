"""The four broadcast rules, against NumPy and the corners of the specifications."""

import re
from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pytest import mark, raises

from te_select import BroadcastError, SelectError
from te_select.operator.broadcast import MAX_RANK, RULES, broadcast, joined, parse_axis, parse_shape

DIMS = st.sampled_from([0, 1, 1, 2, 3])
SHAPES = st.lists(DIMS, max_size=6).map(tuple)


@st.composite
def related_shapes(draw):
    """Three shapes cut from one, so that most of them combine."""
    full = draw(SHAPES)

    def operand():
        cut = full[draw(st.integers(0, len(full))) :]
        return tuple(1 if draw(st.booleans()) else dim for dim in cut)

    return operand(), operand(), operand()


def numpy_shape(*shapes):
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def numpy_fits(shape, base):
    try:
        np.broadcast_to(np.empty(shape), base)
    except ValueError:
        return False
    return True


def moved_along(shape, axes, out):
    """The operand's value at every output element, according to ``axes``."""
    array = np.arange(int(np.prod(shape))).reshape(shape)
    strides = [0] * len(out)
    for stride, axis in zip(array.strides, axes, strict=True):
        if axis is not None:
            strides[axis] = stride
    return np.lib.stride_tricks.as_strided(array, out, strides)


def result(*shapes_and_rule):
    try:
        return broadcast(*shapes_and_rule).out_shape
    except BroadcastError:
        return None


@given(related_shapes() | st.tuples(SHAPES, SHAPES, SHAPES))
def test_multidirectional_accepts_and_gives_what_numpy_does(shapes):
    assert result(*shapes, "multidirectional") == numpy_shape(*shapes)


@given(related_shapes() | st.tuples(SHAPES, SHAPES, SHAPES))
def test_two_step_is_numpy_for_sides_then_one_way_for_cond(shapes):
    cond, then, else_ = shapes
    branches = numpy_shape(then, else_)
    expected = branches if branches is not None and numpy_fits(cond, branches) else None
    assert result(cond, then, else_, "numpy") == expected


@given(related_shapes(), st.sampled_from(["numpy", "multidirectional"]))
def test_axes_move_every_operand_as_numpy_broadcasts_it(shapes, rule):
    if result(*shapes, rule) is None:
        return
    found = broadcast(*shapes, rule)
    every = (found.cond_axes, found.then_axes, found.else_axes)
    for shape, axes in zip(shapes, every, strict=True):
        expected = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), found.out_shape)
        np.testing.assert_array_equal(moved_along(shape, axes, found.out_shape), expected)
        assert [axis is None for axis in axes] == [dim == 1 for dim in shape]


def by_pdpd(*shapes, axis):
    """The shape of out by Paddle's rule, and the axes along which each operand moves."""
    then = shapes[1]
    out = list(then)
    every = []
    for k, shape in enumerate(shapes):
        start = 0 if k == 1 else axis if axis != -1 else len(then) - len(shape)
        if not 0 <= start <= len(then) - len(shape):
            return None
        for place, dim in enumerate(shape, start):
            if (dim, then[place]) == (0, 1):
                out[place] = 0
            elif dim not in (1, then[place]):
                return None
        every.append(tuple(None if dim == 1 else n for n, dim in enumerate(shape, start)))
    return tuple(out), *every


def test_pdpd_lays_cond_and_else_over_then_from_axis_on():
    small = [each for rank in range(3) for each in product((0, 1, 2), repeat=rank)]
    for *shapes, axis in product(small, small, small, range(-2, 4)):
        try:
            made = broadcast(*shapes, "pdpd", axis)
            found = made.out_shape, made.cond_axes, made.then_axes, made.else_axes
        except BroadcastError:
            found = None
        assert found == by_pdpd(*shapes, axis=axis), (shapes, axis)


@mark.parametrize("count", [1, 2, 3])
def test_shapes_join_as_numpy_says(count):
    small = [each for rank in range(3) for each in product((0, 1, 2, 3), repeat=rank)]
    for shapes in product(small, repeat=count):
        assert joined(*shapes) == numpy_shape(*shapes), shapes


@given(st.tuples(SHAPES, SHAPES, SHAPES))
def test_none_accepts_equal_shapes_only(shapes):
    assert result(*shapes, "none") == (shapes[0] if len(set(shapes)) == 1 else None)


BOTH = ("numpy", "multidirectional")
COMBINED = [  # rules, shapes of cond, then and else, and out or None
    (RULES, (("n", 4),) * 3, ("n", 4)),
    (BOTH, (("n",), ("m",), ("n",)), None),
    (BOTH, ((3,), ("n",), ("n",)), None),
    (BOTH, ((0,), ("n",), ("n",)), None),
    (BOTH, ((1,), ("n",), (1,)), ("n",)),
    (BOTH[1:], (("n",), (1,), (1,)), ("n",)),
    (BOTH[:1], (("n",), (1,), (1,)), None),
]


@mark.parametrize("rules, shapes, out", COMBINED)
def test_names_equal_themselves_and_do_not_broadcast(rules, shapes, out):
    assert [result(*shapes, rule) for rule in rules] == [out] * len(rules)


@mark.parametrize(
    "shapes, wider",
    [(((5,), (1,), ()), "[5]"), (((2, 3), (3,), ()), "[2,3]"), (((2, 1), (3,), (1,)), "[2,3]")],
)
def test_cond_that_would_widen_is_told_of_the_rule_that_lets_it(shapes, wider):
    with raises(BroadcastError, match="'multidirectional', NumPy's own rule") as refused:
        broadcast(*shapes, "numpy")
    assert str(refused.value).endswith(f"would give {wider}")


@mark.parametrize("cond", [(2,), (4, 2), ("n",)])
def test_cond_that_no_rule_takes_is_told_of_none(cond):
    with raises(BroadcastError) as refused:
        broadcast(cond, (3,), (3,), "numpy")
    assert not re.search("multidirectional|do not", str(refused.value))


NO_AXIS = (True, np.True_, 1.0, "1", None, 65, -65)
NO_DIM = (-1, 1.0, 2.5, None, True, np.True_)
REFUSED = [
    *((parse_axis, (axis,), "is not -1 or an axis of then") for axis in NO_AXIS),
    *(
        (broadcast, ((2,), (2,), (2,), rule, axis), "has no axis")
        for rule, axis in zip(("none", *BOTH), (0, -2, 1), strict=True)
    ),
    *(
        (broadcast, ((), (), (), rule), ", ".join(RULES))
        for rule in ("", "NUMPY", None, "two-step")
    ),
    *(
        (parse_shape, ((2, dim), "then"), f"then.*{re.escape(repr(dim))}")
        for dim in (*NO_DIM, "", "n" * 64, "1n", "a b", "é", b"n")
    ),
    *((parse_shape, (shape, "cond"), "cond") for shape in ("23", b"23", 3, None)),
    (parse_shape, ((1,) * (MAX_RANK + 1), "cond"), f"at most {MAX_RANK}"),
    (parse_shape, ((2**28, 2**29), "cond"), r"2\^57"),
    (broadcast, ((2**28, 1), (1, 2**29), (), "multidirectional"), r"2\^57"),
    # Strides are products of the other extents; they overflow even if one extent is 0.
    (parse_shape, ((0, 2**40, 2**40), "cond"), r"2\^57"),
    (broadcast, ((0, 2**40, 1), (1, 2**40), (2**40, 1), "multidirectional"), r"out .* 2\^57"),
    (broadcast, ((), (2, 3), (4,), "numpy"), r"then \[2,3\] and else_ \[4\].*axis -1 is 3"),
    *((broadcast, ((2, *n), n, n, "pdpd"), f"within rank {len(n)}$") for n in ((3,), (3, 3))),
]


@mark.parametrize("function, given, said", REFUSED)
def test_refusal_names_what_is_wrong(function, given, said):
    with raises(BroadcastError, match=said) as error:
        function(*given)
    assert isinstance(error.value, SelectError) and isinstance(error.value, ValueError)


def test_dims_become_plain_ints_up_to_the_limits():
    dims = parse_shape(np.array([2, 3], np.uint8), "cond")
    assert dims == (2, 3)
    assert {type(dim) for dim in dims} == {int}
    assert len(parse_shape((1,) * MAX_RANK, "cond")) == MAX_RANK
    largest = (2**57 - 1, "n" * 63)
    assert parse_shape(largest, "cond") == largest
