"""te_select.where does what numpy.where does: values, types, layouts, warnings and errors."""

import copy
import inspect
import os
import pickle
import warnings

import numpy as np
import pytest

import te_select
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support.strategies import numpy_dtype
from tests.support.where_calls import difference, filled, outcome, random_call

where = te_select.where
CALLS = int(os.environ.get("TE_SELECT_RANDOM_CALLS", "1600"))
SEEDS = 8
C = np.array([True, False])


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_calls_are_those_of_numpy(seed):
    for number in range(CALLS // SEEDS):
        arguments = random_call(np.random.default_rng([seed, number]))
        found = difference(outcome(where, arguments), outcome(np.where, arguments))
        assert found is None, f"random_call({[seed, number]}): {found}"


def test_kernels_serve_half_of_the_large_random_calls():
    before = where.stats()
    for number in range(60):
        where(*random_call_of_one_type(np.random.default_rng([99, number])))
    after = where.stats()
    assert after.calls - before.calls == 60
    assert after.large_calls - before.large_calls >= 30


def random_call_of_one_type(rng):
    shape = (int(rng.integers(70, 90)), int(rng.integers(70, 90)))
    x = rng.random(shape).astype(rng.choice(["f4", "f8", "f2"]))
    return rng.random(shape) < 0.5, x, x[:1]


@pytest.mark.parametrize(
    "x, y, dtype",
    [
        (np.zeros(2, "f4"), 3.0, "f4"),
        (np.zeros(2, "i1"), 1.5, "f8"),
        (np.zeros(2, "f4"), 1j, "c8"),
        (np.zeros(2, "f4"), np.float64(3), "f8"),
        (np.zeros(2, "f4"), True, "f4"),
        (np.zeros(2, "?"), 1, "i8"),
        (np.zeros(2, "i8"), np.zeros(2, "u8"), "f8"),
        (np.zeros(2, "f2"), np.zeros(2, "i2"), "f4"),
        (np.zeros(2, ">f4"), np.zeros(2, ">f4"), "f4"),
        (1, 2, "i8"),
        (1, 2.0, "f8"),
        (True, False, "?"),
    ],
)
def test_types_promote_as_numpys(x, y, dtype):
    found = where(C, x, y)
    assert found.dtype == np.dtype(dtype) == np.where(C, x, y).dtype
    assert found.tobytes() == np.where(C, x, y).tobytes()


@pytest.mark.parametrize("number", [300, -1, 2**63, 2**31])
@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f2", "f4"])
def test_ints_that_a_type_does_not_hold_do_what_numpys_do(number, dtype):
    x = np.zeros(2, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", category=RuntimeWarning
        )  # converting to float16 may overflow
        for cond in (C, [True, False]):
            expected = outcome(np.where, (cond, number, x))  # it wraps, since NumPy 2.5 it raises
            assert difference(outcome(where, (cond, number, x)), expected) is None


def test_a_number_that_overflows_warns_at_the_callers_line():
    x = np.zeros(2, "f4")
    with pytest.warns(RuntimeWarning, match="overflow encountered in cast") as caught:
        where([True, True], x, 1e300)
        where(np.array([True, True]), x, 1e300)
    assert caught[-1].filename == __file__
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        where(np.array([True, True]), x, 1e300)


def test_the_layout_is_that_of_numpy():
    c = np.zeros((5, 7), bool)
    f, k = np.asfortranarray(c), np.zeros((5, 7))
    for arguments in (
        (f, np.asfortranarray(k), 1),
        (c, np.asfortranarray(k), 1),
        (f, k, 1),
        (c[0], np.asfortranarray(k), 1),
        (True, np.asfortranarray(k), 1),
        (c[::-1], k[::-1], k[::-1]),
        (c[:, ::2], k[:, ::2], 0.0),
        (np.zeros((3, 1, 4, 2), bool).transpose(3, 1, 0, 2), np.float32(1), np.float32(2)),
        (True, np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 3), 1.0),
    ):
        assert where(*arguments).strides == np.where(*arguments).strides
        assert where(*arguments).flags.owndata


def test_cond_alone_is_nonzero():
    assert [each.tolist() for each in where(np.array([[0, 2], [3, 0]]))] == [[0, 1], [1, 0]]


def test_zero_dims_give_an_array():
    found = where(np.bool_(True), np.float32(1), np.float32(2))
    assert isinstance(found, np.ndarray) and found.shape == ()


@pytest.mark.parametrize(
    "cond", [[np.nan, 0.0, -0.0], [1j, 0, 2], [b"", b"a", b"0"], [None, "", 3], ["False", "", "x"]]
)
def test_cond_of_any_type(cond):
    cond = np.array(cond)
    assert (where(cond, 1, 0) == np.where(cond, 1, 0)).all()
    large = np.tile(cond, 20_000)
    assert (where(large, 1.5, 0) == np.where(large, 1.5, 0)).all()


def test_nat_is_true():
    times = np.array(["NaT", "1970-01-01"], "M8[s]")
    assert (where(times, 1, 0) == np.where(times, 1, 0)).all()


def test_any_nonzero_byte_of_cond_is_true():
    cond = np.array([0, 1, 2, 128, 255] * 100, np.uint8).view(bool)
    assert where(cond, 1, 0).tolist() == [0, 1, 1, 1, 1] * 100


def test_bits_of_signalling_nans_are_kept():
    bits = np.array([0x7FA00001, 0xFFA00002], np.uint32)
    assert where(C, bits.view("f4"), bits.view("f4")).view(np.uint32).tolist() == bits.tolist()


def test_subclasses_give_plain_arrays():
    masked = np.ma.array([1.0, 2.0], mask=[True, False])
    assert type(where(C, masked, 0.0)) is np.ndarray
    assert where(C, masked, 0.0).tolist() == [1.0, 0.0]
    assert type(where(C, np.asmatrix([[1.0, 2.0]]), 0.0)) is np.ndarray


def test_an_override_of_array_functions_wins():
    class Mine(np.ndarray):
        def __array_function__(self, func, types, args, kwargs):
            return "mine"

    assert where(C, np.zeros(2).view(Mine), 1.0) == "mine"


def test_64_dims():
    shape = (1,) * 30 + (2,) + (1,) * 32 + (3,)
    x = np.arange(6.0).reshape(shape)
    assert where(x > 2, x, 0).tolist() == np.where(x > 2, x, 0).tolist()


@pytest.mark.parametrize(
    "arguments",
    [
        (C, 1),
        (),
        (C, 1, 2, 3),
        (np.zeros(2, bool), np.zeros(3), np.zeros(4)),
        (np.zeros((0,), bool), np.zeros(2), 1),
        (C, 1, 2**64),
        (C, np.zeros(2, "f4"), 10**400),
        (C, np.zeros(2, "M8[s]"), np.zeros(2, "i4")),
        (np.zeros(2, [("a", "i4"), ("b", "i4")]), 1, 2),
        ([[1], [1, 2]], 1, 2),
    ],
)
def test_errors_are_those_of_numpy(arguments):
    with pytest.raises(Exception) as theirs:
        np.where(*arguments)
    with pytest.raises(theirs.type) as ours:
        where(*arguments)
    assert ours.type is theirs.type


def test_arguments_are_positional_but_for_out():
    with pytest.raises(TypeError, match="condition"):
        where(condition=C)
    not_out = np.zeros(2)
    with pytest.raises(TypeError, match="expected out"):
        where(C, np.ones(2), 2.0, axis=not_out)
    assert not not_out.any()
    with pytest.raises(TypeError, match="only with cond, x and y"):
        where(C, out=np.zeros(2))


def test_it_looks_like_a_function():
    assert str(inspect.signature(where)) == (
        "(cond: 'Any', x: 'Any' = Ellipsis, y: 'Any' = Ellipsis, /, *, out: 'Any' = None) -> 'Any'"
    )
    assert where.__name__ == "where" and "bit for bit" in where.__doc__
    assert "where" in te_select.__all__


def test_stats_say_why_a_call_was_left_to_numpy():
    before = where.stats().left
    odd = np.array([1, "a"], object)
    where(C, odd, odd)
    where(np.zeros((0, 3), bool), 1.0, 2.0)
    after = where.stats().left
    assert after["element type"] == before.get("element type", 0) + 1
    assert after["shape"] == before.get("shape", 0) + 1


def test_it_is_pickled_and_copied_by_its_name():
    assert pickle.loads(pickle.dumps(where)) is where
    assert copy.deepcopy(where) is where


@pytest.mark.parametrize("shape", [(153_600,), (150, 1024), (8, 20_000)])
def test_call_that_is_done_in_pieces_counts_once(shape):
    x, y = np.ones(shape, "f4"), np.zeros(shape[-1:])
    before = te_select.where.stats()
    te_select.where(np.ones(shape, bool), x, y)
    te_select.where(np.ones((shape[0], 1), bool) if len(shape) > 1 else True, x, y)
    after = te_select.where.stats()
    found = after.calls - before.calls, after.large_calls - before.large_calls
    assert found == (2, 2)
    assert after.elements - before.elements == 2 * x.size


def test_large_calls_have_more_than_4096_elements():
    found = []
    for elements in (4096, 4097):
        before = where.stats().large_calls
        where(np.ones(elements, bool), np.ones(elements), np.zeros(elements))
        found.append(where.stats().large_calls - before)
    assert found == [0, 1]


@pytest.mark.parametrize("dtype", ["M8[s]", "S3", "V5", "f8"])
@pytest.mark.parametrize("is_read_only", [False, True])
def test_kernels_serve_dates_texts_and_read_only_arrays(dtype, is_read_only):
    rng = np.random.default_rng(0)
    x, y = (filled(rng, (70,), np.dtype(dtype)) for _ in "ab")
    cond = rng.random(70) < 0.5
    for array in (cond, x, y):
        array.flags.writeable = not is_read_only
    calls = where.stats().calls
    assert difference((where(cond, x, y), []), (np.where(cond, x, y), [])) is None
    assert where.stats().calls == calls + 1


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_every_element_type_keeps_its_bits(dtype):
    rng = np.random.default_rng(1)
    x, y = (filled(rng, shape, numpy_dtype(dtype)) for shape in ((4, 7), (7,)))
    cond, calls = filled(rng, (4, 1), np.dtype(bool)), where.stats().calls
    found, expected = where(cond, x, y), np.where(cond, x, y)
    assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())
    assert where.stats().calls == calls + 1


@pytest.mark.parametrize("cond", [2**63, 2**70, -(2**64), 0])
def test_cond_may_be_a_large_int(cond):
    x = np.arange(4, dtype=np.float16)
    large = np.arange(20_000.0), np.arange(20_000, dtype="i4")  # converted in pieces
    for sides in ((x, x + 1), (x, 3.0), (np.float16(1), x), large):
        given = (cond, *sides)
        assert difference(outcome(where, given), outcome(np.where, given)) is None


def test_metadata_of_an_element_type_does_not_reach_the_result():
    cond, plain = np.array([True, False]), np.ones(2, np.float32)
    x = plain.astype(np.dtype("f4", metadata={"of": "x"}))
    for sides in ((x, x), (x, 1.0), (x, plain)):
        assert where(cond, *sides).dtype.metadata is None


def test_empty_results_are_left_to_numpy_whatever_their_extent():
    cond = np.ones((0, 1), bool)
    side = np.broadcast_to(np.float32(1), (1, 2**45))  # of no memory
    calls = where.stats().calls
    for given in ((cond, side, side), (cond, side, 0.0), (cond, cond.astype("f4"), 0.0)):
        found = where(*given)
        assert found.shape == np.where(*given).shape and found.dtype == np.float32
    assert where.stats().calls == calls


@pytest.mark.parametrize(
    "cond, x, y, name",
    [
        ((300, 70), (300, 70), (300, 70), "w4 n:cte"),
        ((300, 70), (300, 70), (), "w4 n:ct"),
        ((), (300, 70), (300, 70), "w4 n:te"),
        ((300, 1), (300, 70), (70,), "w4 m:ct x n:te"),
        ((300, 70), (300, 1), (1, 70), "w4 m:ct x n:ce"),  # its kernel was not built
        ((300, 1), (300, 7000), (300, 7000), "w4 n:te"),  # long rows
    ],
)
def test_stats_name_the_kernel_of_a_call(cond, x, y, name):
    before = where.stats().kernels
    found = where(np.ones(cond, bool), np.ones(x, "f4"), np.zeros(y, "f4"))
    after = where.stats().kernels
    grown = {key: n - before.get(key, 0) for key, n in after.items() if n != before.get(key, 0)}
    assert grown == {name: found.size}


def test_stats_leave_out_calls_that_no_one_kernel_serves():
    x = np.ones((300, 70), "f4")
    before = where.stats()
    where(np.ones((70, 300), bool).T, x, x)  # by tiles
    where(True, np.ones((), "f4"), np.broadcast_to(np.float32(2), (300, 70)))
    after = where.stats()
    assert (after.calls - before.calls, after.kernels) == (2, before.kernels)


DATES = [*(f"M8[{unit}]" for unit in ("Y", "M", "W", "D", "h", "s", "ms", "ns", "7s")), "M8"]
SPANS = [dtype.replace("M8", "m8") for dtype in DATES]
SINGLE = [0, 1, -3, 2_000_000_000, 2**62, np.iinfo("i8").min]  # the last is NaT


@pytest.mark.parametrize(
    ("array", "single"),
    [(a, b) for each in (DATES, SPANS) for a in each[:-1] for b in each if a != b],
)
def test_single_date_of_another_unit_is_what_numpy_makes_of_it(array, single):
    x = np.arange(5).view(array)
    cond = np.arange(5) % 2 == 0
    for value in SINGLE:
        for y in (np.array(value).view(single), np.array([value]).view(single)[0]):
            for given in ((cond, x, y), (cond, y, x), (cond, x[:1], y), (cond[:1], y, x)):
                assert difference(outcome(where, given), outcome(np.where, given)) is None, given


@pytest.mark.parametrize(
    ("array", "single"),
    [
        ("M8[s]", np.datetime64("NaT")),
        ("M8[Y]", np.datetime64("NaT")),
        ("m8[ns]", np.timedelta64("NaT")),
        ("m8[s]", np.timedelta64(0)),
        ("m8[s]", np.timedelta64(7)),
        ("M8[ns]", np.datetime64("2020-01-01")),
        ("M8[D]", np.datetime64("1969", "Y")),
        ("m8[ms]", np.timedelta64(-3, "h")),
        ("m8[ms]", np.array([[4]], "m8[s]")),
    ],
)
def test_kernels_take_a_single_date_that_loses_nothing(array, single):
    x = np.arange(6000).view(array).reshape(2, 3000)
    for cond in (np.arange(6000).reshape(2, 3000) % 3 == 0, np.arange(3000) % 3):
        for out in (None, np.empty_like(x)):
            calls, left = where.stats().calls, where.stats().left
            found = where(cond, x, single, out=out)
            assert (where.stats().calls - calls, where.stats().left) == (1, left)
            expected = np.where(cond, x, single)
            assert (found.dtype, found.tobytes()) == (expected.dtype, expected.tobytes())


def test_what_belongs_to_where_is_listed_and_described():
    assert {"build", "explain", "stats", "use"} <= set(dir(where))
    assert all(getattr(where, name).__doc__ for name in ("build", "explain", "stats", "use"))
