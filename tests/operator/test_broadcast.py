"""The four broadcast rules, against NumPy and the corners of the specifications."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from te_select import Workload
from te_select.errors import BroadcastError, SelectError
from te_select.operator.broadcast import (
    MAX_RANK,
    RULES,
    Axes,
    Shape,
    broadcast,
    parse_axis,
    parse_shape,
)

DIMS = st.sampled_from([0, 1, 1, 2, 3])
SHAPES = st.lists(DIMS, max_size=6).map(tuple)


@st.composite
def related_shapes(draw: st.DrawFn) -> tuple[Shape, Shape, Shape]:
    """Three shapes cut from one, so that most of them combine."""
    full = draw(SHAPES)

    def operand() -> Shape:
        cut = full[draw(st.integers(0, len(full))) :]
        return tuple(1 if draw(st.booleans()) else dim for dim in cut)

    return operand(), operand(), operand()


def numpy_shape(*shapes: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def numpy_fits(shape: Shape, base: Shape) -> bool:
    try:
        np.broadcast_to(np.empty(shape), base)
    except ValueError:
        return False
    return True


def moved_along(shape: Shape, axes: Axes, out: Shape) -> np.ndarray[Any, Any]:
    """The operand's value at every output element, according to ``axes``."""
    array = np.arange(int(np.prod(shape))).reshape(shape)
    strides = [0] * len(out)
    for stride, axis in zip(array.strides, axes, strict=True):
        if axis is not None:
            strides[axis] = stride
    return np.lib.stride_tricks.as_strided(array, out, strides)


def result(cond: Shape, then: Shape, else_: Shape, rule: str, axis: int = -1) -> Shape | None:
    try:
        return broadcast(cond, then, else_, rule, axis).out_shape
    except BroadcastError:
        return None


@given(related_shapes() | st.tuples(SHAPES, SHAPES, SHAPES))
def test_multidirectional_accepts_and_gives_what_numpy_does(shapes: Any) -> None:
    assert result(*shapes, "multidirectional") == numpy_shape(*shapes)


@given(related_shapes() | st.tuples(SHAPES, SHAPES, SHAPES))
def test_two_step_is_numpy_for_sides_then_one_way_for_cond(shapes: Any) -> None:
    cond, then, else_ = shapes
    branches = numpy_shape(then, else_)
    expected = branches if branches is not None and numpy_fits(cond, branches) else None
    assert result(cond, then, else_, "numpy") == expected


@given(related_shapes(), st.sampled_from(["numpy", "multidirectional"]))
def test_axes_move_every_operand_as_numpy_broadcasts_it(shapes: Any, rule: str) -> None:
    if result(*shapes, rule) is None:
        return
    found = broadcast(*shapes, rule)
    for shape, axes in zip(
        shapes, (found.cond_axes, found.then_axes, found.else_axes), strict=True
    ):
        expected = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), found.out_shape)
        np.testing.assert_array_equal(moved_along(shape, axes, found.out_shape), expected)


@given(related_shapes(), st.sampled_from(["numpy", "multidirectional"]))
def test_operand_stays_only_where_its_extent_is_one(shapes: Any, rule: str) -> None:
    if result(*shapes, rule) is None:
        return
    found = broadcast(*shapes, rule)
    for shape, axes in zip(
        shapes, (found.cond_axes, found.then_axes, found.else_axes), strict=True
    ):
        assert [axis is None for axis in axes] == [dim == 1 for dim in shape]


@given(st.data())
def test_pdpd_lays_cond_and_else_over_then_from_axis_on(data: st.DataObject) -> None:
    then = data.draw(st.lists(st.integers(1, 4), max_size=6).map(tuple))
    axis = data.draw(st.integers(-1, len(then)))

    def operand() -> Shape:
        start = data.draw(st.integers(0, len(then))) if axis == -1 else axis
        stop = len(then) if axis == -1 else data.draw(st.integers(start, len(then)))
        return tuple(1 if data.draw(st.booleans()) else dim for dim in then[start:stop])

    cond, else_ = operand(), operand()
    found = broadcast(cond, then, else_, "pdpd", axis)
    assert found.out_shape == then
    for shape, axes in ((cond, found.cond_axes), (then, found.then_axes), (else_, found.else_axes)):
        lead = len(then) - len(shape) if shape is then or axis == -1 else axis
        padded = (1,) * lead + shape + (1,) * (len(then) - lead - len(shape))
        expected = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(padded), then)
        np.testing.assert_array_equal(moved_along(shape, axes, then), expected)


@given(st.tuples(SHAPES, SHAPES, SHAPES))
def test_none_accepts_equal_shapes_only(shapes: Any) -> None:
    assert result(*shapes, "none") == (shapes[0] if len(set(shapes)) == 1 else None)


@given(SHAPES, st.sampled_from(RULES))
def test_equal_shapes_combine_under_every_rule(shape: Shape, rule: str) -> None:
    assert result(shape, shape, shape, rule) == shape


@pytest.mark.parametrize(
    ("shapes", "out"),
    [
        (((3,), (1, 3), (0, 1)), (0, 3)),
        (((1,), (0,), (1,)), (0,)),
        (((0, 1), (1, 2), (1, 1)), (0, 2)),
    ],
)
def test_zero_against_one_is_zero(shapes: tuple[Shape, Shape, Shape], out: Shape) -> None:
    assert result(*shapes, "multidirectional") == out


@pytest.mark.parametrize("rule", ["none", "numpy", "pdpd", "multidirectional"])
def test_zero_against_three_is_refused(rule: str) -> None:
    assert result((1,), (0,), (3,), rule) is None


def test_highest_rank_need_not_carry_the_shape() -> None:
    assert result((3, 1), (2,), (2,), "multidirectional") == (3, 2)


@pytest.mark.parametrize("cond", [(5,), (2, 1), (0,)])
def test_cond_alone_widens_under_multidirectional_only(cond: Shape) -> None:
    assert result(cond, (1,), (), "multidirectional") == cond
    assert result(cond, (1,), (), "numpy") is None


@pytest.mark.parametrize(
    ("shapes", "wider"),
    [(((5,), (1,), ()), "[5]"), (((2, 3), (3,), ()), "[2,3]"), (((2, 1), (3,), (1,)), "[2,3]")],
)
def test_cond_that_would_widen_is_told_of_the_rule_that_lets_it(shapes: Any, wider: str) -> None:
    with pytest.raises(BroadcastError, match="'multidirectional', NumPy's own rule") as refused:
        broadcast(*shapes, "numpy")
    assert str(refused.value).endswith(f"would give {wider}")


@pytest.mark.parametrize("cond", [(2,), (4, 2), ("n",)])
def test_cond_that_no_rule_takes_is_told_of_none(cond: Shape) -> None:
    with pytest.raises(BroadcastError) as refused:
        broadcast(cond, (3,), (3,), "numpy")
    assert "multidirectional" not in str(refused.value)


def test_none_compares_ranks() -> None:
    assert result((1,), (), (), "none") is None
    assert result((1,), (1, 1), (1,), "none") is None


def test_pdpd_base_is_then() -> None:
    assert result((2,), (2,), (2, 4), "pdpd", 0) is None
    assert result((2, 4), (2,), (2,), "pdpd", 0) is None
    assert result((2,), (2, 4), (2,), "pdpd", 0) == (2, 4)


def test_pdpd_axis_minus_one_is_resolved_for_each_input() -> None:
    found = broadcast((5,), (2, 3, 4, 5), (4, 5), "pdpd")
    assert (found.cond_axes, found.else_axes) == ((3,), (2, 3))


def test_pdpd_keeps_trailing_ones() -> None:
    assert result((), (2, 3, 4, 5), (5, 1), "pdpd", 3) is None
    assert broadcast((), (2, 3, 4, 5), (4, 1), "pdpd", -1).else_axes == (2, None)
    assert result((), (2, 3, 4, 5), (3, 1), "pdpd", -1) is None


@pytest.mark.parametrize(("cond", "else_"), [((1, 1), ()), ((), (1, 1))])
def test_pdpd_overrun_is_refused_even_by_ones(cond: Shape, else_: Shape) -> None:
    assert result(cond, (2, 3), else_, "pdpd", 1) is None


def test_pdpd_then_of_one_gives_way_to_zero() -> None:
    assert result((1,), (2, 1), (0,), "pdpd") == (2, 0)
    assert result((0,), (2, 1), (1,), "pdpd") == (2, 0)
    assert result((1,), (2, 3), (0,), "pdpd") is None
    assert result((2,), (1,), (1,), "pdpd") is None


@pytest.mark.parametrize("axis", [-2, 3, 100])
def test_pdpd_axis_outside_the_base_is_refused(axis: int) -> None:
    assert result((1,), (2, 3), (1,), "pdpd", axis) is None


def test_pdpd_scalar_may_start_at_the_end() -> None:
    assert result((), (2, 3), (), "pdpd", 2) == (2, 3)


@pytest.mark.parametrize("axis", [True, np.True_, 1.0, "1", None, 65, -65])
def test_axis_must_be_an_int(axis: Any) -> None:
    with pytest.raises(BroadcastError, match="is not -1 or an axis of then"):
        parse_axis(axis)


@pytest.mark.parametrize("rule", ["none", "numpy", "multidirectional"])
def test_axis_belongs_to_pdpd(rule: str) -> None:
    with pytest.raises(BroadcastError, match="has no axis"):
        broadcast((2,), (2,), (2,), rule, 0)


@pytest.mark.parametrize("rule", ["", "NUMPY", None, "two-step"])
def test_unknown_rule_is_refused_and_the_known_are_listed(rule: Any) -> None:
    with pytest.raises(BroadcastError, match="none, numpy, pdpd, multidirectional"):
        broadcast((), (), (), rule)


def test_name_equals_itself_and_nothing_else() -> None:
    for rule in RULES:
        assert result(("n", 4), ("n", 4), ("n", 4), rule) == ("n", 4)
    assert result(("n",), ("m",), ("n",), "numpy") is None
    assert result((3,), ("n",), ("n",), "numpy") is None
    assert result((0,), ("n",), ("n",), "multidirectional") is None


def test_name_meets_the_literal_one() -> None:
    assert result((1,), ("n",), (1,), "numpy") == ("n",)
    assert result(("n",), (1,), (1,), "multidirectional") == ("n",)
    assert result(("n",), (1,), (1,), "numpy") is None


@pytest.mark.parametrize("dim", [-1, 1.0, 2.5, None, True, np.True_, "", "1n", "a b", "é", b"n"])
def test_malformed_dim_is_refused_by_name_and_value(dim: Any) -> None:
    with pytest.raises(BroadcastError, match="then") as error:
        parse_shape((2, dim), "then")
    assert repr(dim) in str(error.value)


@pytest.mark.parametrize("shape", ["23", b"23", 3, None])
def test_shape_must_be_a_sequence_of_dims(shape: Any) -> None:
    with pytest.raises(BroadcastError, match="cond"):
        parse_shape(shape, "cond")


def test_dims_become_plain_ints() -> None:
    dims = parse_shape(np.array([2, 3], np.uint8), "cond")
    assert dims == (2, 3)
    assert {type(dim) for dim in dims} == {int}


def test_rank_is_limited_and_said() -> None:
    assert len(parse_shape((1,) * MAX_RANK, "cond")) == MAX_RANK
    with pytest.raises(BroadcastError, match=f"at most {MAX_RANK}"):
        parse_shape((1,) * (MAX_RANK + 1), "cond")


def test_number_of_elements_is_limited() -> None:
    assert parse_shape((2**56,), "cond") == (2**56,)
    with pytest.raises(BroadcastError, match=r"2\^57"):
        parse_shape((2**28, 2**29), "cond")
    with pytest.raises(BroadcastError, match=r"2\^57"):
        broadcast((2**28, 1), (1, 2**29), (), "multidirectional")


def test_empty_shape_of_huge_extents_is_limited_too() -> None:
    """Strides are products of the other extents; they overflow even if one extent is 0."""
    with pytest.raises(BroadcastError, match=r"2\^57"):
        parse_shape((0, 2**40, 2**40), "cond")
    with pytest.raises(BroadcastError, match=r"out .* 2\^57"):
        broadcast((0, 2**40, 1), (1, 2**40), (2**40, 1), "multidirectional")


def test_message_shows_both_shapes_and_the_axis() -> None:
    with pytest.raises(
        BroadcastError, match=r"then \[2,3\] and else_ \[4\].*axis -1 is 3"
    ) as error:
        broadcast((), (2, 3), (4,), "numpy")
    assert isinstance(error.value, SelectError)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("rank", [1, 2])
def test_operand_of_too_many_axes_is_told_the_rank(rank: int) -> None:
    then = (3,) * rank
    with pytest.raises(BroadcastError, match=f"it must lie within rank {rank}$"):
        Workload((2, *then), then, then, "float32", "pdpd")
