"""Whether spans look at cond first: decided by a few places of it."""

import mmap
import random
from ctypes import CDLL, c_int, c_int64, c_void_p

import numpy as np
from pytest import fixture, mark

from tests.support import c_half

IN_RUNS = 1
WORTH = {1: 4096, 2: 512, 4: 64, 8: 64, 16: 64}  # elements of one value, by the width


@fixture
def half():
    options = *c_half.SANITIZED, "-Dmemcmp=look_and_count"
    return c_half.load(c_half.built("cond_sampling_test.c", ("cpu/cond_sampling.c",), *options))


def looks(half, cond, width=4, in_place=False, once=True):
    """Ask for an array whose last axis is contiguous."""
    outer = cond.ndim - 1
    extents = (c_int64 * outer)(*cond.shape[:-1])
    strides = (c_int64 * outer)(*cond.strides[:-1])
    run = c_int64(cond.shape[-1])
    data = c_void_p(cond.ctypes.data)
    found = half.looks(IN_RUNS, data, run, outer, extents, strides, once, c_int64(width), in_place)
    return bool(found)


def blocks(length, count=1 << 19):
    picked = np.random.default_rng(0).random(count // length) < 0.5
    return np.repeat(picked, length)


@mark.parametrize("width", WORTH)
def test_random_cond_is_not_looked_at_and_one_in_runs_is(half, width):
    assert not looks(half, blocks(1), width)
    assert not looks(half, blocks(WORTH[width] // 8), width)
    assert looks(half, blocks(WORTH[width]), width)
    assert looks(half, np.zeros(1 << 17, bool), width)


def test_cond_that_is_read_again_and_again_is_not_looked_at(half):
    assert not looks(half, np.zeros(1 << 17, bool), once=False)


@mark.parametrize("width", WORTH)
def test_in_place_runs_of_a_vector_suffice(half, width):
    short = blocks(64 // width)
    assert looks(half, short, width, in_place=True) and not looks(half, short, width)
    assert not looks(half, np.arange(1 << 17) % 2 == 0, width, in_place=True)
    sparse = np.random.default_rng(1).random(1 << 19) < 0.01
    assert looks(half, sparse, width, in_place=True) or width == 1


@mark.parametrize("uniform, looked", [(16, 8), (8, 8), (7, 16), (0, 9)])
def test_places_are_tested_until_8_of_16_agree_or_cannot(half, uniform, looked):
    cond = np.arange(1 << 16) % 2 == 0
    cond[: uniform << 12] = True
    c_int.in_dll(half, "looked").value = 0
    assert looks(half, cond) == (uniform >= 8)
    assert c_int.in_dll(half, "looked").value == looked


def test_causal_masks_are_looked_at_as_a_whole_and_by_rows(half):
    causal = np.tri(1024, dtype=bool)
    assert looks(half, causal.reshape(-1))
    assert looks(half, causal)
    assert looks(half, causal[:, ::-1].copy()[:, :1000])
    assert not looks(half, (np.indices((1024, 1024)).sum(0) % 3 == 0)[::-1])


def test_no_byte_outside_of_cond_is_read(half):
    """The last byte of cond is the last of a page, and the next page may not be read."""
    page = mmap.PAGESIZE
    area = mmap.mmap(-1, 65 * page)
    whole = np.frombuffer(area, np.bool_)
    libc = CDLL(None)
    assert libc.mprotect(c_void_p(whole.ctypes.data + 64 * page), page, 0) == 0
    draw = random.Random(0)
    for _ in range(2000):
        m, n = draw.randint(1, 40), draw.randint(1, 5000)
        rows = whole[64 * page - m * n : 64 * page].reshape(m, n)
        for cond in (rows, rows[::-1], rows.reshape(-1), rows[:, :, None]):
            looks(half, cond, draw.choice([*WORTH]))
