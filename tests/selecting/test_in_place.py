"""te_select.copyto and te_select.putmask are numpy's, in what they write and in what they leave."""

import numpy as np
from pytest import mark

import te_select
from te_select import putmask, where
from tests.selecting.table import EACH, SEEDS
from tests.support.where_calls import (
    NUMBERS,
    filled,
    outcome,
    random_dtype,
    random_mask,
    random_shape,
    random_sides,
    strided,
)


def random_copyto(rng):
    """The arguments of a call; src may lie over dst."""
    shape = random_shape(rng, 9000)
    dst = strided(rng, shape, random_dtype(rng))
    dst.flags.writeable = rng.random() < 0.9
    (src,) = random_sides(rng, shape, dst.dtype, 1)
    if rng.random() < 0.1:
        src = dst[::-1] if dst.ndim and rng.random() < 0.5 else dst
    casting = rng.choice(["same_kind", "unsafe", "safe", "no", "?"], p=[0.6, 0.2, 0.1, 0.05, 0.05])
    return dst, src, str(casting), random_mask(rng, shape, odd=0.05)


def random_putmask(rng):
    """The arguments of a call; values may be shorter, longer or empty."""
    dst, values, _, mask = random_copyto(rng)
    if rng.random() < 0.7:
        mask = filled(rng, dst.shape, np.dtype(bool))
    if rng.random() < 0.5:
        dtype = dst.dtype if rng.random() < 0.8 else random_dtype(rng)
        size = int(rng.choice([0, 1, 2, 3, 7, 64, dst.size, dst.size + 3]))
        values = filled(rng, [size], dtype)
    return dst.copy() if rng.random() < 0.5 else dst, mask, values


@mark.parametrize("make, name", [(random_copyto, "copyto"), (random_putmask, "putmask")])
@SEEDS
def test_random_calls_are_those_of_numpy(make, name, seed):
    for number in range(EACH):
        ours, theirs = (make(np.random.default_rng([seed, number])) for _ in range(2))
        found = outcome(getattr(te_select, name), ours), memory_of(ours[0])
        expected = outcome(getattr(np, name), theirs), memory_of(theirs[0])
        assert found == expected, f"{make.__name__}({[seed, number]})"


def memory_of(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    has_bits = not array.dtype.hasobject and array.dtype.char not in "gG"  # which have padding
    return array.tobytes() if has_bits else repr(array.tolist())


ONE_TYPE = [(name, name) for name in ("u1", "f2", "f4", "i8", "c16", "M8[s]", "S3")]
KEPT = [("f8", "i4"), ("c16", "f2"), ("f4", "u1"), ("i8", "?"), ("f2", "i1"), ("c8", "i2")]


@mark.parametrize("dtype, own", ONE_TYPE + KEPT)
def test_kernels_serve_arrays_of_one_type_and_promote(dtype, own):
    rng = np.random.default_rng(0)
    x, y = (filled(rng, (30, 50), np.dtype(each)) for each in (dtype, own))
    mask = filled(rng, (30, 50), np.dtype(bool))
    shorter = (y.reshape(-1), y[0, :6].copy(), y[:1, 0]) if own == dtype else ()
    for values in (y, *shorter):
        expected = np.where(mask, np.resize(values, x.shape), x)
        assert by_kernels(putmask, x, mask, values).tobytes() == expected.tobytes()
        by_number = by_kernels(putmask, x, mask.astype("i4") * 3, values)
        assert by_number.tobytes() == expected.tobytes()
    expected = np.where(mask, y, x)
    assert by_kernels(copied, x, mask, y).tobytes() == expected.tobytes()


def by_kernels(put, x, mask, values):
    """What a call that kernels do writes to a copy of x."""
    before = where.stats().calls
    written = x.copy()
    put(written, mask, values)
    assert where.stats().calls == before + 1
    return written


# A float64 is made of them, and of that a float32: rounded once, they would be the next one.
ROUNDED_TWICE = [sign * (2**k + 2 ** (k - 24) + 1) for k in (54, 60, 62) for sign in (1, -1)]


@mark.parametrize("sign", [1, -1])
@mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_ints_up_to_2_53_are_selected_by_kernels(sign, dtype):
    """A kernel rounds an int once; up to there both ways are one."""
    for function, put in (("copyto", copied), ("putmask", putmask)):
        for number, calls_of_kernels in ((2**53, 1), (2**53 + 1, 0)):
            dst = np.zeros(3, dtype)
            before = where.stats().calls
            put(dst, np.array([True, False, True]), sign * number)
            assert where.stats().calls - before == calls_of_kernels, function
            assert dst.tolist() == [np.array(sign * number).astype(dtype), 0, dst[0]]


def copied(dst, mask, value):
    te_select.copyto(dst, value, where=mask)


@mark.parametrize("name", ["copyto", "putmask"])
def test_numbers_and_elements_on_each_other_are_numpys(name):
    memory = np.zeros((2, 10))
    on_each_other = [np.lib.stride_tricks.as_strided(each, (4, 10), (0, 8)) for each in memory]
    given = [(on_each_other, np.arange(40).reshape(4, 10) % 3 == 0, np.arange(40.0).reshape(4, 10))]
    warned_of = [np.broadcast_arrays(np.ones(4), np.zeros((1, 4)))[0] for _ in memory]
    given += [(warned_of, np.ones((1, 4), bool), 3.0)]
    numbers = (*NUMBERS, *ROUNDED_TWICE, 2**60 + 1, None, "a")
    for dtype in ("f2", "f4", "f8", "u1", "i8", "c8", "?", "m8[s]", "O"):
        given += [(np.ones((2, 3), dtype), np.array([True, False, True]), n) for n in numbers]
    for both, mask, values in given:
        args = (mask, values) if name == "putmask" else (values, "same_kind", mask)
        found = outcome(getattr(te_select, name), (both[0], *args))
        assert found == outcome(getattr(np, name), (both[1], *args)), (values, both[0].dtype)
        assert repr(both[0]) == repr(both[1]), (values, both[0].dtype)
