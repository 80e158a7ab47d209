"""The memory that where() takes for tiles, and for rows of one value."""

import numpy as np
from pytest import mark

from tests.support import c_half
from tests.support.where_recorder import HALF, bits, mask, operands

KB = 1 << 10
FAILED = -3
THREADS = 4
TRANSPOSED = (mask(300, 400), bits(400, 300).T, bits(300, 400))
SINGLE_IN_ROWS = (mask(900, 1), bits(900, 300), bits(1, 1))


@mark.parametrize("given", [TRANSPOSED, SINGLE_IN_ROWS])
def test_tasks_at_the_same_time_have_memory_of_their_own(where, given):
    """The recorder begins up to four tasks inside of each other, in the middle of a kernel."""
    made = where(bytes_per_thread=KB)
    asked = made.asked(*given)
    assert (made["jobs"], made["tasks_of_job"] >= THREADS) == (1, True)
    assert (made["taken"], made["given_back"]) == (1, 1)
    assert {each.task for each in asked} == set(range(made["tasks_of_job"]))


@mark.parametrize("given", [TRANSPOSED, SINGLE_IN_ROWS])
@mark.parametrize("threads", [1, THREADS])
def test_nothing_is_written_where_there_is_no_memory(where, given, threads):
    made = where(bytes_per_thread=KB)
    made["at_hand"] = threads
    made["is_short_of_memory"] = 1
    out = np.full(np.broadcast(*given).shape, 7, "f4")
    assert made.select(*given, out) == FAILED
    assert made.notes() == [] and (out == 7).all()


@mark.parametrize(
    "given, allocations",
    [
        (operands(100_000), 0),
        ((mask(900, 1), bits(900, 300), bits(900, 300)), 0),
        ((mask(20, 32), bits(20, 33)[:, :32], bits(20, 32)), 0),  # 128 bytes: no short rows
        ((mask(2, 64), bits(64, 2).T, bits(2, 64)), 0),  # tiles so small that they need 2 KB
        ((mask(3, 64), bits(64, 3).T, bits(3, 64)), 1),  # two lines, and 13 bytes for each element
    ],
)
def test_only_rooms_of_more_than_2_kb_are_allocated(alone, given, allocations):
    alone.asked(*given)
    assert (alone["taken"], alone["given_back"]) == (allocations, allocations)


def test_memory_is_given_back_if_a_kernel_fails(alone):
    alone["fails"] = 1
    assert alone.select(*TRANSPOSED, np.zeros((300, 400), "f4")) == FAILED
    assert (alone["taken"], alone["given_back"]) == (1, 1)


def test_tasks_of_a_thread_have_one_room_which_is_in_its_cache():
    more = {"cpu/pool.c", "cpu/pool_cores.c", "cpu/pool_team.c", "where/where_call.c"}
    files = tuple(sorted({*HALF, *more} - {"where/where.c"}))  # which the driver includes
    room_of = c_half.load(c_half.built("where_rooms_test.c", files)).room_of
    assert [room_of(task, 8, 4) for task in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [room_of(task, 3, 3) for task in range(3)] == [0, 1, 2]
