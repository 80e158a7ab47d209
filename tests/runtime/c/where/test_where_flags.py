"""Which flags where() gives its kernels, by the profile and the operands."""

import numpy as np
from pytest import mark

from tests.support.machines import FENCES
from tests.support.where_recorder import bits, mask, operands

KB = 1 << 10


def flags(asked):
    (found,) = {frozenset(each.flags) for each in asked}
    return set(found)


@mark.parametrize("threads, elements", [(1, 100), (2, 200)])
def test_stores_pass_the_cache_by_bytes_moved_per_thread(where, threads, elements):
    """Every thread has caches of its own. Stores past the cache are ordered once they are done."""
    made = where(stream_per_thread=1300, bytes_per_thread=KB)
    made["at_hand"] = threads
    for n in (elements - 1, elements):
        streams = n == elements
        assert flags(made.asked(*operands(n))) == ({"stream"} if streams else set())
        assert made["fences"] == streams * FENCES


def test_call_that_reads_little_is_a_fill_with_own_threshold(where):
    """If it reads less than half as much as it writes. Only the bytes of out are compared."""
    made = where(stream_per_thread=4000, fill_per_thread=800)
    for n in (199, 200):
        asked = made.asked(mask(n), np.float32(1), np.float32(2))
        assert flags(asked) == ({"stream"} if n == 200 else set())
    assert flags(made.asked(mask(200), bits(200), np.float32(2))) == set()


RUNS = np.arange(64 * KB) % (16 * KB) < 8 * KB


@mark.parametrize(
    "skip, cond, looks",
    [(0, RUNS, False), (1, RUNS, True), (1, mask(64 * KB), False), (2, mask(64 * KB), True)],
)
def test_cond_in_runs_is_looked_at_first_if_it_pays(where, skip, cond, looks):
    x = bits(64 * KB)
    made = where(bytes_per_thread=KB, skip=skip)
    assert flags(made.asked(cond, x, x[::-1].copy())) == ({"skip"} if looks else set())
    made = where(skip=skip)  # a single thread never looks
    assert flags(made.asked(cond, x, x[::-1].copy())) == set()


@mark.parametrize("side", ["x", "y", ""])
def test_short_runs_suffice_where_out_is_a_side(where, side):
    cond = np.repeat(mask(KB), 64)
    given = {"x": bits(64 * KB, dtype="u1"), "y": bits(64 * KB, dtype="u1")[::-1].copy()}
    made = where(bytes_per_thread=KB, skip=1)
    asked = made.asked(cond, given["x"], given["y"], given.get(side))
    assert flags(asked) == ({"skip"} if side else set())


@mark.parametrize("skip, looks", [(1, False), (2, True)])
def test_cond_that_is_read_again_for_each_row_is_not_tested(where, skip, looks):
    made = where(bytes_per_thread=KB, skip=skip)
    asked = made.asked(RUNS, bits(2, 64 * KB), bits(2, 64 * KB))
    assert flags(asked) == ({"skip"} if looks else set())


@mark.parametrize("cond", [mask(600, 1), mask(40, 600).T, np.array(True)])
def test_cond_without_runs_in_memory_is_never_looked_at_first(where, cond):
    made = where(bytes_per_thread=KB, skip=2)
    columns = cond.shape[-1] if cond.ndim and cond.shape[-1] > 1 else 40
    asked = made.asked(cond, bits(600, columns), bits(600, columns))
    assert flags(asked) == set()


@mark.parametrize("gap", [0, 1])
def test_first_row_of_a_mask_says_nothing_of_the_others(where, gap):
    made = where(bytes_per_thread=KB, skip=1)
    x = bits(400, 200)
    uniform = np.zeros((400, 200 + gap), bool)
    mixed = mask(400, 200 + gap)
    uniform[0], mixed[0] = mixed[0], True
    assert flags(made.asked(uniform[:, :200], x, x)) == {"skip"}
    assert flags(made.asked(mixed[:, :200], x, x)) == set()


@mark.parametrize("backwards", [0, 1])
def test_spans_walk_backwards_if_the_machine_gains(where, backwards):
    made = where(backwards=backwards)
    assert flags(made.asked(*operands(9))) == ({"backwards"} if backwards else set())


def test_tiles_have_no_flag(where):
    """Their out is a buffer in the cache, or is read back from one."""
    made = where(bytes_per_thread=KB, skip=2, backwards=1, stream_per_thread=1)
    cond, x, y = operands(300, 300)
    assert flags(made.asked(cond, x, y.T)) == set()
    assert made["fences"] == FENCES  # the caller could not know
