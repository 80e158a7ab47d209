import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from te_select.frontends.symbolic.expressions import (
    UNKNOWN,
    Expression,
    add,
    as_size,
    floor_divide,
    least,
    modulo,
    multiply,
    product,
    subtract,
    symbol,
    total,
)
from te_select.frontends.symbolic.ordering import at_least, equal, less, maximum, minimum
from te_select.frontends.symbolic.text import parse
from tests.support.models import value_of

A, B, C = symbol("a"), symbol("b"), symbol("c")
PYTHON = {
    add: lambda a, b: a + b,
    subtract: lambda a, b: a - b,
    multiply: lambda a, b: a * b,
    minimum: min,
    maximum: max,
    floor_divide: lambda a, b: a // b,
    modulo: lambda a, b: a % b,
}
sizes = st.fixed_dictionaries({name: st.integers(0, 50) for name in "abc"})
leaves = st.sampled_from([A, B, C]) | st.integers(-9, 9)


@st.composite
def expressions(draw, depth=3):
    """An expression, and the function of sizes that it stands for."""
    if depth == 0 or draw(st.booleans()):
        leaf = draw(leaves)
        return leaf, lambda env: value_of(leaf, env)
    function = draw(st.sampled_from(list(PYTHON)))
    left, left_value = draw(expressions(depth - 1))
    if function in (floor_divide, modulo):
        divisor = draw(st.integers(1, 7))
        right, right_value = divisor, lambda env: divisor
    else:
        right, right_value = draw(expressions(depth - 1))
    python = PYTHON[function]
    return function(left, right), lambda env: python(left_value(env), right_value(env))


@settings(deadline=None)
@given(expressions(), sizes)
def test_expression_has_the_value_of_its_arithmetic(made, env):
    expression, value = made
    if expression is not UNKNOWN:
        assert value_of(expression, env) == value(env)


@settings(deadline=None)
@given(expressions(), expressions(), sizes)
def test_what_is_said_of_order_holds_at_all_sizes(one, two, env):
    (a, a_value), (b, b_value) = one, two
    if UNKNOWN in (a, b):
        return
    left, right = a_value(env), b_value(env)
    if at_least(a, b):
        assert left >= right
    if (answer := equal(a, b)) is not UNKNOWN:
        assert answer == (left == right)
    if (answer := less(a, b)) is not UNKNOWN:
        assert answer == (left < right)
    if (low := least(a)) is not None:
        assert left >= low


@settings(deadline=None)
@given(expressions())
def test_text_of_an_expression_is_read_back(made):
    expression, _ = made
    if isinstance(expression, Expression):
        assert parse(str(expression)) == expression


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (multiply(A, add(B, 1)), add(multiply(A, B), A)),
        (
            subtract(multiply(add(A, B), subtract(A, B)), multiply(A, A)),
            multiply(B, multiply(B, -1)),
        ),
        (floor_divide(multiply(A, 6), 3), multiply(A, 2)),
        (floor_divide(multiply(A, B), B), A),
        (floor_divide(subtract(A, 10), 10), subtract(floor_divide(A, 10), 1)),
        (floor_divide(floor_divide(A, 4), 8), floor_divide(A, 32)),
        (minimum(70, minimum(60, A)), minimum(60, A)),
        (maximum(maximum(subtract(A, 1), 0), 0), maximum(subtract(A, 1), 0)),
        (product([A, 2, B]), multiply(multiply(2, B), A)),
        (total([A, 2, B]), add(B, add(A, 2))),
        (floor_divide(add(floor_divide(A, 2), 1), 3), floor_divide(add(A, 2), 6)),
        (modulo(add(multiply(A, 3), 5), 2), modulo(add(A, 1), 2)),
    ],
)
def test_equal_arithmetic_is_one_expression(one, two):
    assert one == two


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (floor_divide(add(floor_divide(A, 2), 1), 3), lambda a, _: (a // 2 + 1) // 3),
        (floor_divide(subtract(floor_divide(A, 4), 3), 2), lambda a, _: (a // 4 - 3) // 2),
        (floor_divide(multiply(A, 3), multiply(A, 2)), lambda a, _: 3 * a // (2 * a)),
        (floor_divide(product([A, B, 3]), multiply(A, 2)), lambda a, b: 3 * a * b // (2 * a)),
        (floor_divide(multiply(A, 4), multiply(A, 2)), lambda a, _: 4 * a // (2 * a)),
        (floor_divide(add(multiply(A, B), 1), B), lambda a, b: (a * b + 1) // b),
        (modulo(add(multiply(A, 3), 5), 4), lambda a, _: (3 * a + 5) % 4),
        (modulo(multiply(B, -1), 3), lambda _, b: -b % 3),
    ],
)
def test_quotients_and_remainders_are_rounded_as_python_does(expression, value):
    for a in range(1, 13):
        for b in range(1, 8):
            assert value_of(expression, {"a": a, "b": b}) == value(a, b)


def test_smaller_of_two_may_be_negative_where_one_of_them_may():
    maybe = subtract(A, 5)
    assert not at_least(minimum(maybe, B), 0)
    assert at_least(maximum(maybe, B), 0)
    assert equal(minimum(maybe, B), -1) is UNKNOWN


def test_numbers_that_are_no_ints_are_unknown():
    assert add(0.5, 1) is UNKNOWN
    assert less(0.5, 1) is UNKNOWN


def test_division_by_zero_is_unknown():
    assert floor_divide(A, 0) is UNKNOWN
    assert floor_divide(4, 0) is UNKNOWN
    assert modulo(A, 0) is UNKNOWN


def test_extent_of_an_axis_is_never_negative():
    shorter = subtract(A, 1)
    assert least(shorter) == -1
    assert least(as_size(shorter)) == 0
    assert equal(as_size(shorter), -1) is False
    assert equal(shorter, -1) is UNKNOWN


def test_expressions_that_grow_without_end_become_unknown():
    value = add(A, B)
    for _ in range(12):
        value = multiply(value, add(value, C))
    assert value is UNKNOWN
    nested = A
    for _ in range(200):
        nested = minimum(floor_divide(nested, B), C)
    assert nested is UNKNOWN
