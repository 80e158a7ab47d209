"""Operands that NumPy's own conversion does not survive, or speaks of; numbers in tvm-ffi calls."""

import warnings

import numpy as np
import pytest

import te_select
from te_select.numpy_where.kernels import library
from tests.support.programs import python
from tests.support.where_calls import difference, exported, outcome


def same(given, within=lambda function: function):
    """Whether a call is NumPy's, within what is around both."""
    found, expected = (outcome(within(each), given) for each in (te_select.where, np.where))
    return difference(found, expected) is None


GENERIC = """
    import numpy as np
    import te_select

    for n in (3, 600, 5000):
        sides = np.zeros(n, "M8[Y]"), np.full(n, 5).view("M8")
        for where in (np.where, te_select.where):
            try:
                where(np.ones(n, bool), *sides)
            except ValueError as error:
                assert "generic units" in str(error)
            else:
                raise AssertionError("no error")
    empty = np.ones((1, 3), bool), np.zeros((1, 0, 3), "M8[Y]"), np.full((1, 1, 3), 5).view("M8")
    assert te_select.where(*empty).shape == (1, 0, 3)
"""


def test_dates_of_generic_units_are_what_numpy_makes_of_them():
    python(GENERIC)


def test_signalling_nan_is_converted_without_a_word():
    size = 100_000
    signalling = np.full(size, 0x7F800001, np.uint32).view("f4")
    ones, zeros = np.ones(size, "u4"), np.zeros(size, "i1")
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for given in ((signalling, ones, zeros), (ones > 0, signalling, ones)):
            assert te_select.where(*given).tobytes() == np.where(*given).tobytes()


@pytest.mark.parametrize("raised", ["invalid", "over", "under"])
def test_conversion_errors_are_raised_only_as_numpy_does(raised):
    signalling, cond = np.array([0x7FA00000], np.uint32).view("f4"), np.array([True])
    floats, several = np.ones(2, "f4"), np.ones(3, "f4")
    calls = [
        (signalling, 1, 2),
        (signalling, signalling, np.ones(1)),
        (cond, signalling, np.zeros(1)),
        (cond, signalling, 1e300 + 0j),
        (floats, several, 1e300 + 0j),
        (floats, floats, 1e300 + 0j),
        (floats, floats, 1e-320 + 0j),
        (floats, floats, 1e300),
    ]

    def raising(function):
        return np.errstate(all="ignore", **{raised: "raise"})(function)

    for given in calls:
        assert same(given, raising), given


def test_overflow_is_warned_of_once_at_the_callers_line():
    for dtype in (np.dtype("f4"), np.dtype("f4", metadata={"a": 1})):
        with pytest.warns(RuntimeWarning, match="overflow") as warned:
            te_select.where(np.array([True, False]), np.ones(2, dtype), 1e300 + 0j)
        assert [warning.filename for warning in warned] == [__file__]


def test_subclass_of_a_scalar_may_have_a_rule_of_its_own():
    class Own(np.float64):
        def __array_function__(self, function, types, args, kwargs):
            return "by its own rule"

    for cond in (np.array([True]), np.arange(20_000), Own(1)):
        assert (
            te_select.where(cond, Own(1), 2.0)
            == te_select.where(cond, np.ones(3), Own(2))
            == "by its own rule"
        )


@pytest.fixture(scope="module")
def function():
    for part in ("w1", "w2", "w4", "w8", "w16"):
        assert library.fetch(part)
    return exported("te_select_where")


WITHIN = [("bool", 1), ("int8", 127), ("int8", -128), ("uint8", 255), ("int64", -(2**63))]
WITHIN += [("uint16", 0), ("float32", 0.1), ("float32", -3), ("float64", -0.0), ("float64", 1e300)]
BEYOND = [("bool", 2), ("bool", 256), ("int8", 300), ("int8", -129), ("uint8", -1)]
BEYOND += [("uint32", 1 << 32), ("int32", 0.5), ("float16", 0.5)]


@pytest.mark.parametrize(("dtype", "number"), BEYOND)
def test_number_that_the_type_does_not_hold_is_refused(function, dtype, number):
    cond, x, out = np.zeros(4, bool), np.ones(4, dtype), np.full(4, 1, dtype)
    with pytest.raises(TypeError, match="no number that out's type holds"):
        function(cond, x, number, out)
    assert (out == 1).all()


@pytest.mark.parametrize(("dtype", "number"), WITHIN)
def test_number_that_the_type_holds_is_written(function, dtype, number):
    cond, x, out = np.zeros(4, bool), np.zeros(4, dtype), np.ones(4, dtype)
    function(cond, x, number, out)
    assert out.tobytes() == np.full(4, number, dtype).tobytes()


SIDES = ((1.5,), [1.5], "zz", "i4", b"ab", {"a": 1}, np.str_("f8"), np.datetime64(1, "s"))


@pytest.mark.parametrize("side", SIDES, ids=repr)
def test_side_that_could_name_a_type_is_a_value(side):
    cond = np.arange(20_000) % 3  # large, and to be converted
    for other in (np.ones(1, "u2"), np.ones(20_000, "u2"), np.float32(2), b"cd"):
        for given in ((cond, side, other), (cond, other, side)):
            assert same(given), given
