"""te_select.lazy: conditions are NumPy's, whichever way they are computed."""
# ruff: noqa: SIM300, PLR0124, B015 - comparisons of all forms

import copy
import operator
import pickle
import sys

import numpy as np
import pytest

import te_select
from te_select.numpy_where.conditions import Condition
from tests.numpy_where.table import EACH, SEEDS
from tests.support import where_calls as calls
from tests.support.where_calls import difference, outcome

lazy = te_select.lazy
where = te_select.where
RELATIONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)
BY_NUMPY = (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
PAIRS = (operator.and_, operator.or_, np.logical_and, np.logical_or, np.bitwise_xor)
LARGE = 20_000  # elements, which kernels compare


# ---- random conditions --------------------------------------------------------------------------


def random_leaf(rng, shape, arrays):
    """A comparison, of an array with a number or another array: a function of what wraps them."""
    dtype = np.dtype(str(rng.choice(calls.NUMERIC))) if rng.random() < 0.9 else None
    a = calls.operand(rng, shape, calls.random_dtype(rng) if dtype is None else dtype)
    arrays.append(a)
    kind = rng.random()
    if kind < 0.1:
        ask = rng.choice([np.isnan, np.isfinite])
        return lambda wrap: ask(wrap(a))
    if kind < 0.4:
        b = calls.NUMBERS[int(rng.integers(len(calls.NUMBERS)))]
    elif kind < 0.5:
        b = a.flat[0] if isinstance(a, np.ndarray) and a.size else a
    else:
        b = calls.operand(rng, shape, a.dtype if kind < 0.9 else calls.random_dtype(rng))
        arrays.append(b)
    relation = rng.choice([*RELATIONS, *BY_NUMPY])
    if rng.random() < 0.5:
        return lambda wrap: relation(wrap(a), b)
    return lambda wrap: relation(b, wrap(a))


def random_condition(rng, shape, arrays, depth=3):
    """A condition of some depth, as a function of what wraps its arrays; some are booleans."""
    kind = rng.random()
    if not depth or kind < 0.3:
        return random_leaf(rng, shape, arrays)
    one = random_condition(rng, shape, arrays, depth - 1)
    if kind < 0.5:
        negate = rng.choice([operator.invert, np.logical_not])
        return lambda wrap: negate(one(wrap))
    combine = rng.choice(PAIRS, p=[0.3, 0.3, 0.18, 0.18, 0.04])
    if kind < 0.65:
        mask = calls.random_mask(rng, shape, odd=0.05)
        arrays.append(mask)
        return lambda wrap: combine(one(wrap), mask)
    other = random_condition(rng, shape, arrays, depth - 1)
    return lambda wrap: combine(one(wrap), other(wrap))


def as_is(array):
    return array


def listed(cond):
    """What can be told of a condition."""
    found = np.asarray(cond)
    return found.dtype, found.shape, found.tobytes()


def is_out(value, result):
    is_writable = isinstance(value, np.ndarray) and value.flags.writeable
    return is_writable and (value.dtype, value.shape) == (result.dtype, result.shape)


def result_of(function):
    """The outcome of a function, of which no earlier comparison of NumPy's scalars is told."""
    np.divide(np.float64(1), 1)
    return outcome(function, ())


def check_condition(rng, most):
    shape = calls.random_shape(rng, most)
    arrays = []
    cond = random_condition(rng, shape, arrays)
    x, y = calls.random_sides(rng, shape, np.dtype(str(rng.choice(calls.NUMERIC))))
    found, theirs = (
        outcome(lambda wrap=wrap: listed(cond(wrap)), ()) for wrap in (lazy, np.asarray)
    )
    assert found == theirs
    expected = result_of(lambda: np.where(cond(as_is), x, y))
    assert difference(result_of(lambda: where(cond(lazy), x, y)), expected) is None
    result = expected[0]
    if isinstance(result, type) or result.dtype.char in "gGO":  # whose bytes are not all their own
        return
    outs = [calls.strided(rng, result.shape, result.dtype)]
    outs += [each for each in (*arrays, x, y) if is_out(each, result)]
    for out in outs:
        before = out.copy()
        found = result_of(lambda out=out: where(cond(lazy), x, y, out=out))
        assert found[0] is out and found[1] == expected[1]
        assert out.tobytes() == result.tobytes()
        out[...] = before


def check_conditions(seeds, most=20_000):
    for seed in seeds:
        with np.errstate(all="ignore"):
            rng = np.random.default_rng(seed)
        try:
            check_condition(rng, most)
        except AssertionError as error:
            raise AssertionError(f"check_condition of seed {seed}") from error


@SEEDS
def test_random_conditions_are_numpys(seed):
    check_conditions([[seed, number] for number in range(EACH)])


@pytest.mark.slow
def test_many_random_conditions_are_numpys():
    check_conditions([[8, number] for number in range(20_000)])


# ---- what is deferred ---------------------------------------------------------------------------

A = np.arange(LARGE, dtype="f4")
X = lazy(A)


@pytest.mark.parametrize(
    "value", [[1, 2], 3.0, None, np.float32(1), A.view(np.matrix), A.view(np.ma.MaskedArray)]
)
def test_what_is_no_plain_array_is_returned_as_it_is(value):
    assert lazy(value) is value


@pytest.mark.parametrize("name", ["pandas.Series", "xarray.DataArray", "dask.array.asarray"])
def test_array_of_another_library_keeps_its_own_rules(name):
    module, _, of = name.rpartition(".")
    other = getattr(pytest.importorskip(module), of)(A)
    assert lazy(other) is other
    assert type(X > other) is type(other > A)


@pytest.mark.parametrize("cond", [
    X > 1, 1 < X, np.float32(0.2) <= X, A < X, X == X, np.not_equal(X, 0), X >= 2**20, X > True * A,
    np.isnan(X), np.isfinite(X), ~(X > 1), (X > 1) & (A > 2), (A > 2) | (X > 1), True & (X > 1),
    np.logical_not(X > 1), np.logical_or(X > 1, A > 2), lazy(A > 1) & (X > 1),
    lazy(A.astype("u1")) < 255, lazy(A.astype("c8")) == 1j,
    X < lazy(A.reshape(4, 1, -1)[:1, :, :1]),
])  # fmt: skip
def test_comparison_is_deferred(cond):
    assert type(cond) is Condition and cond.dtype == bool


@pytest.mark.parametrize("compute", [
    lambda w: w(A) > 1e300, lambda w: w(A) > 1e-42, lambda w: w(A) > 2**60, lambda w: w(A) == "a",
    lambda w: w(A.astype("u1")) < 300, lambda w: w(A.astype("i8")) < np.uint64(3),
    lambda w: w(A) > np.float64(1), lambda w: w(A.astype("c8")) < 1,
    lambda w: w(A.astype(">f4")) < 1,
    lambda w: np.isnan(w(A.astype("i4"))), lambda w: (w(A) > 1) ^ (w(A) > 2), lambda w: ~w(A > 1),
    lambda w: np.less(w(A), 1, where=A > 2, out=np.zeros(LARGE, bool)), lambda w: w(A) + 1,
    lambda w: np.less.outer(w(A[:2]), w(A[:2])), lambda w: np.add.reduce(w(A)),
    lambda w: w(A)[A > 1], lambda w: (w(A) > 1) == (w(A) > 2),
    lambda w: (w(A) > 1) & 1, lambda w: np.sort(w(A)),
    lambda w: np.concatenate([w(A), w(A)]), lambda w: (w(A) > 1).sum(), lambda w: abs(w(A)),
    lambda w: np.add(A, 1, out=w(np.zeros(LARGE, "f4"))), lambda w: w(A.astype(object)) < 1,
])  # fmt: skip
def test_all_else_is_numpys_at_once(compute):
    with np.errstate(all="ignore"):
        found, expected = compute(lazy), compute(as_is)
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)


def test_errors_and_warnings_come_with_the_comparison():
    with pytest.raises(ValueError, match="broadcast"):
        X > A[:3]
    with pytest.raises(ValueError, match="broadcast"):
        (X > 1) & (lazy(A[:3]) > 1)
    with pytest.warns(RuntimeWarning, match="overflow"):
        X > 1e300
    with pytest.raises(TypeError):
        X < "text"
    with pytest.raises(ValueError, match="ambiguous"):
        0 <= X < 3
    with pytest.raises(TypeError, match="never written"):
        np.logical_and(A > 1, A > 2, out=X > 1)
    for made in (X, X > 1):
        with pytest.raises(TypeError, match="unhashable"):
            hash(made)
        with pytest.raises(TypeError, match="made by"):
            type(made)()


def test_lazy_stands_for_its_array():
    assert (
        np.asarray(X) is A and np.asarray(X, "f4") is A and (X.shape, X.dtype) == (A.shape, A.dtype)
    )
    assert copy.copy(X)._plain() is A and (pickle.loads(pickle.dumps(X))._plain() == A).all()
    assert len(X) == LARGE and 3 in X and list(X[:2]) == [0, 1] and float(lazy(np.array(2.0))) == 2
    written = lazy(np.zeros(3))
    written[1:] = lazy(np.ones(2))
    assert written.sum() == 2 and str(written) == "[0. 1. 1.]" and range(3)[lazy(np.array(1))] == 1
    assert np.array(X, copy=True) is not A and not hasattr(X, "__array_interface__")
    assert where(X, X, 0).tobytes() == A.tobytes() == where(True, X, 0, out=X).tobytes()


def test_condition_is_computed_at_each_use():
    a = np.zeros(4)
    cond = lazy(a) > 0
    assert not cond.any() and len(cond) == 4 and cond.ndim == 1 and "False" in repr(cond)
    a[1] = 1
    assert cond.any() and a[cond].tolist() == [1] and [*cond].count(True) == 1
    assert pickle.loads(pickle.dumps(cond)).tolist() == copy.copy(cond).tolist() == cond.tolist()
    assert where(cond)[0].tolist() == np.nonzero(cond)[0].tolist() == [1]
    both = cond
    both &= a < 1
    assert not both.any() and cond.any() and bool(lazy(np.array(1)) > 0)


def test_more_than_eight_comparisons_are_computed_at_once():
    cond = X > 0
    for k in range(1, 8):
        cond &= k < X
        assert type(cond) is Condition
    for _ in range(20):
        cond = ~cond
    assert type(cond) is Condition and type(cond & (X > 8)) is np.ndarray
    assert (np.asarray(cond) == (A > 7)).all() and ((cond & (X > 8)) == (A > 8)).all()


# ---- time and memory ----------------------------------------------------------------------------


@pytest.mark.parametrize("change", [
    lambda a: a.fill(-1), lambda a: setattr(a, "shape", (4, -1)),
    lambda a: setattr(a, "dtype", "i4"),
    lambda a: setattr(a, "shape", (1, -1)), lambda a: setattr(a, "dtype", ">f4"),
    lambda a: setattr(a, "dtype", "c8"), lambda a: a.resize(0, refcheck=False),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_changed_array_is_compared_as_it_is_then(change):
    ours = A - 5
    theirs = ours.copy()
    cond = (lazy(ours) > 0) & np.ones(LARGE, bool)
    change(ours)
    change(theirs)
    found = outcome(lambda: where(cond, 1.0, 2.0), ())
    expected = outcome(lambda: np.where((theirs > 0) & np.ones(LARGE, bool), 1.0, 2.0), ())
    assert difference(found, expected) is None


@pytest.mark.parametrize("shift", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_out_over_what_is_compared(dtype, shift):
    memory = np.random.default_rng(0).integers(-9, 9, LARGE + 8).astype(dtype)
    for step in (1, -1):
        a = memory[4:-4][::step]
        out = memory[4 + shift :][:LARGE]
        expected = np.where((a > 0) & (a < 5), 1, memory[:LARGE]).astype(dtype)
        before = memory.copy()
        where((lazy(a) > 0) & (lazy(a) < 5), 1, memory[:LARGE], out=out)
        assert out.tobytes() == expected.tobytes()
        memory[...] = before


def test_conditions_and_arrays_are_released():
    a = np.arange(9.0)
    before = sys.getrefcount(a)
    for _ in range(100):
        cond = ~np.isnan(lazy(a)) & (lazy(a) > 1) & (0 < lazy(a)) & (a > 2)
        where(cond, a, 0), np.asarray(cond), repr(cond)
        with pytest.raises(ValueError, match="broadcast"):
            cond & (lazy(a[:2]) > 0)
    del cond
    assert sys.getrefcount(a) == before


# ---- the other functions ------------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    lambda of, a, c: of.copyto(a, 1, where=c), lambda of, a, c: of.putmask(a, c, 1),
    lambda of, a, c: of.putmask(a, c, a[::-1].copy()), lambda of, a, c: of.putmask(a, c, [1, 2, 3]),
    lambda of, a, c: of.copyto(a, a[::-1].copy(), "same_kind", c),
    lambda of, a, c: of.putmask(a, c[:3], 1),
    lambda of, a, c: a.__setitem__(..., of.select([c, a < 9], [a, 2], 3)),
    lambda of, a, c: a.__setitem__(..., of.ma.where(c, np.ma.array(a, mask=a > 7), 2).filled(0)),
])  # fmt: skip
@pytest.mark.parametrize("size", [3, LARGE])
def test_functions_take_conditions(call, size):
    ours = A[:size].copy()
    theirs = ours.copy()
    x = lazy(ours)
    found = outcome(lambda: call(te_select, ours, (x > 1) & (x < 90)), ())
    assert found == outcome(lambda: call(np, theirs, (theirs > 1) & (theirs < 90)), ())
    assert ours.tobytes() == theirs.tobytes()


def test_stats_count_calls_of_conditions():
    before = where.stats()
    where(X > 1, A, 0)
    te_select.copyto(A.copy(), 1, where=X > 2)
    te_select.putmask(A.copy(), X > 2, 1)
    after = where.stats()
    assert after.calls == before.calls + 3 and after.left == before.left
