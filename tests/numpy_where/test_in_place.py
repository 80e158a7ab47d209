"""te_select.copyto and te_select.putmask are numpy's, in what they write and in what they leave."""

import os

import numpy as np
import pytest

import te_select
from te_select.numpy_where import chain, in_place
from te_select.verify.guarded import READ, WRITE, Guarded, protect
from tests.support.where_calls import (
    filled,
    outcome,
    random_dtype,
    random_mask,
    random_shape,
    random_sides,
    strided,
)

CALLS = int(os.environ.get("TE_SELECT_RANDOM_CALLS", "1600"))
SEEDS = 8


def random_copyto(rng):
    """The arguments of a call; src may lie over dst."""
    shape = random_shape(rng, 9000)
    dst = strided(rng, shape, random_dtype(rng))
    if rng.random() < 0.1:
        dst.flags.writeable = False
    (src,) = random_sides(rng, shape, dst.dtype, 1)
    if rng.random() < 0.1:
        src = dst[::-1] if dst.ndim and rng.random() < 0.5 else dst
    casting = rng.choice(
        ["same_kind", "unsafe", "safe", "no", "never"], p=[0.6, 0.2, 0.1, 0.05, 0.05]
    )
    return dst, src, str(casting), random_mask(rng, shape, odd=0.05)


def random_putmask(rng):
    """The arguments of a call; values may be shorter, longer or empty."""
    dst, values, _, mask = random_copyto(rng)
    if rng.random() < 0.7:
        mask = filled(rng, dst.shape, np.dtype(bool))
    if rng.random() < 0.5:
        dtype = dst.dtype if rng.random() < 0.8 else random_dtype(rng)
        values = filled(rng, [int(rng.choice([0, 1, 2, 3, 7, 64, dst.size, dst.size + 3]))], dtype)
    if rng.random() < 0.5:
        dst = dst.copy()
    return dst, mask, values


@pytest.mark.parametrize("make, name", [(random_copyto, "copyto"), (random_putmask, "putmask")])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_calls_are_those_of_numpy(make, name, seed):
    for number in range(CALLS // SEEDS):
        ours, theirs = (make(np.random.default_rng([seed, number])) for _ in range(2))
        found, expected = (
            outcome(getattr(te_select, name), ours),
            outcome(getattr(np, name), theirs),
        )
        assert found == expected, f"{make.__name__}({[seed, number]})"
        written, wanted = (memory_of(each[0]) for each in (ours, theirs))
        assert written == wanted, f"{make.__name__}({[seed, number]})"


def memory_of(array):
    while isinstance(array.base, np.ndarray):
        array = array.base
    has_bits = not array.dtype.hasobject and array.dtype.char not in "gG"  # which have padding
    return array.tobytes() if has_bits else repr(array.tolist())


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "i8", "c16", "M8[s]", "S3"])
def test_kernels_serve_arrays_of_one_type(dtype, monkeypatch):
    monkeypatch.setattr(in_place, "numpy_copyto", None)
    monkeypatch.setattr(in_place, "numpy_putmask", None)
    rng = np.random.default_rng(0)
    x, y = (filled(rng, (30, 50), np.dtype(dtype)) for _ in range(2))
    mask = filled(rng, (30, 50), np.dtype(bool))
    expected = np.where(mask, y, x)
    for call in (
        lambda a: te_select.copyto(a, y, where=mask),
        lambda a: te_select.putmask(a, mask, y),
        lambda a: te_select.putmask(a, mask, y.reshape(-1)),
    ):
        written = x.copy()
        assert call(written) is None
        assert written.tobytes() == expected.tobytes()
    short = y[0, :7].copy()
    written = x.copy()
    te_select.putmask(written, mask, short)
    assert written.tobytes() == np.where(mask, np.resize(short, x.shape), x).tobytes()


def test_numbers_are_numpys():
    for number in (3, 3.5, -0.0, 300, 2**60 + 1, 1e300, 1e-42, float("nan"), 1j, True, None, "a"):
        for dtype in ("f2", "f4", "f8", "u1", "i8", "c8", "?", "m8[s]", "O"):
            mask = np.array([True, False, True])
            for name, order in (("copyto", (0, 2, 1)), ("putmask", (0, 1, 2))):
                both = np.ones(3, dtype), np.ones(3, dtype)
                given = [[each, mask, number] for each in both]
                keys = ("where",) if name == "copyto" else ()
                results = [
                    outcome(called(getattr(module, name), keys), [args[i] for i in order])
                    for module, args in zip((te_select, np), given, strict=True)
                ]
                assert results[0] == results[1], (name, number, dtype)
                assert repr(both[0]) == repr(both[1]), (name, number, dtype)


def called(function, keys):
    if not keys:
        return function
    return lambda dst, src, mask: function(dst, src, where=mask)


def test_elements_that_lie_on_each_other_are_numpys():
    for name in ("copyto", "putmask"):
        written = []
        for module in (te_select, np):
            memory = np.zeros(10)
            dst = np.lib.stride_tricks.as_strided(memory, (4, 10), (0, 8))
            values, mask = np.arange(40.0).reshape(4, 10), np.arange(40).reshape(4, 10) % 3 == 0
            args = (dst, mask, values) if name == "putmask" else (dst, values, "same_kind", mask)
            getattr(module, name)(*args)
            written.append(memory.tolist())
        assert written[0] == written[1]


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("size", [1, 63, 1000, 40_001])
def test_nothing_beside_the_operands_is_touched(end, size, monkeypatch):
    monkeypatch.setattr(chain, "BLOCK", 4096)
    rng = np.random.default_rng(size)
    held = [Guarded((size,), np.dtype(t)) for t in ("?", "?", "f4", "f4", "f4")]
    for each in held:
        each.fill()
        each.move(each.ends[end])
        each.array()[...] = rng.random(size) < 0.5
    cond, other, x, y, out = (each.array() for each in held)
    for each in held[:4]:
        protect(each.memory.ctypes.data, each.memory.size, READ)
    for expected, call in (
        (
            np.select([cond, other], [x, 2], y),
            lambda: te_select.select([cond, other], [x, 2], y, out=out),
        ),
        (
            np.select([cond, other], [y, x], 3),
            lambda: te_select.select([cond, other], [y, x], 3, out=out),
        ),
        (np.where(cond, x, 0), lambda: te_select.copyto(out, x, where=cond)),
        (np.where(cond, y, 0), lambda: te_select.putmask(out, cond, y)),
        (np.where(cond, np.resize(x[:7], size), 0), lambda: te_select.putmask(out, cond, x[:7])),
    ):
        out[...] = 0
        call()
        assert (out == expected).all() and not held[4].touched()
    for each in held[:4]:
        protect(each.memory.ctypes.data, each.memory.size, READ | WRITE)
