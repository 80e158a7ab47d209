"""Kernels serve operands that NumPy makes arrays of, but for those with a rule of their own."""

import warnings

import numpy as np
from pytest import mark, raises, warns

import te_select
from tests.selecting.table import EACH, SEEDS, check_out
from tests.support.neighbours import KINDS, ByMethod, OfItsOwnRule, as_neighbour, conversions
from tests.support.where_calls import difference, outcome, random_call, strided

where = te_select.where
NO_KERNEL = {"list", "tuple", "none", "pandas.zoned", "chararray", "pandas.nullable", "recarray"}
OF_TWO_AXES = {"matrix", "pandas.DataFrame"}


def operands(rng, size=5000):
    return rng.random(size) < 0.5, rng.integers(0, 99, size, np.int8), rng.random(size)


@SEEDS
def test_random_calls_are_those_of_numpy(seed):
    for number in range(EACH // 2):
        rng = np.random.default_rng([4, seed, number])
        given = [as_neighbour(rng, each) for each in random_call(rng, 9000)]
        expected = outcome(np.where, given)
        converted = conversions(given)
        found = difference(outcome(where, given), expected)
        assert found is None, f"{seed}, {number}: {found}"
        assert conversions(given) == [2 * count for count in converted]
        if isinstance(expected[0], np.ndarray):
            out = strided(rng, expected[0].shape, expected[0].dtype)
            kind = str(rng.choice(["memmap", "subclass", "masked"]))
            check_out(where, given, as_neighbour(rng, out, kind), expected)


@mark.parametrize("kind", sorted(KINDS.keys() - NO_KERNEL))
def test_kernels_serve_each_kind(kind):
    rng = np.random.default_rng(0)
    cond, x, y = operands(rng)
    before = te_select.where.stats()
    held = x[None] if kind in OF_TWO_AXES else x
    given = cond, as_neighbour(rng, held, kind), y
    assert type(given[1]) is not np.ndarray
    where(*given)
    after = te_select.where.stats()
    assert (after.calls - before.calls, after.left) == (1, before.left)


def test_rule_of_an_operand_decides_before_conversions():
    counted = ByMethod(np.ones(3))
    own = OfItsOwnRule()
    left = te_select.where.stats().left.get("kind of operand", 0)
    for given in ((counted, own, 1.0), (own, counted, 1.0), (True, counted, own)):
        function, args, options = where(*given)
        assert function is np.where
        assert [id(each) for each in args] == [id(each) for each in given] and not options
    assert counted.conversions == 0
    assert te_select.where.stats().left["kind of operand"] == left + 3


def test_rule_of_out_decides_how_it_is_written():
    class Own(np.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            asked.append(function)
            return super().__array_function__(function, types, args, kwargs)

    asked = []
    out = np.zeros(3).view(Own)
    assert where(np.ones(3, bool), np.ones(3), 2.0, out=out) is out
    assert asked == [np.copyto] and out.tolist() == [1, 1, 1]


def test_operands_are_converted_in_order_until_one_fails():
    class Failing:
        def __array__(self, dtype=None, copy=None):
            raise LookupError("no array")

    first, last = ByMethod(np.ones(3, bool)), ByMethod(np.ones(3))
    with raises(LookupError, match="no array"):
        where(first, Failing(), last)
    assert (first.conversions, last.conversions) == (1, 0)


@mark.parametrize("size", [3, 20_000])
def test_no_code_of_a_subclass_runs(size):
    class Own(np.ndarray):
        def __array_finalize__(self, given):
            made.append(given)

    made = []
    x, cond = np.ones(size, "i1").view(Own), np.ones(size, "u1").view(Own)
    made.clear()
    for given in ((cond, x, x), (cond, x, np.ones(size)), (cond, 1.5, x)):
        assert difference(outcome(te_select.where, given), outcome(np.where, given)) is None
    assert not made


def test_warning_of_a_conversion_names_the_callers_line():
    class Warns:
        def __array__(self, dtype=None, copy=None):
            warnings.warn("converted", UserWarning, stacklevel=2)
            return np.ones(2)

    with warns(UserWarning, match="converted") as warned:
        te_select.where(np.array([True, False]), Warns(), 1.0)
    assert [warning.filename for warning in warned] == [__file__]
