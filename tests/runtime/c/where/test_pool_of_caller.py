"""Calls of where() on the threads of a caller's pool."""

import numpy as np
from pytest import fixture, mark

from tests.support.machines import needs_fences
from tests.support.where_recorder import bits, mask, operands

KB = 1 << 10
FAILED = -3
TRANSPOSED = (mask(300, 400), bits(400, 300).T, bits(300, 400))


@fixture
def on_pool(where):
    """The recorder, whose calls have a caller's pool of so many threads; 0: it does not say."""

    def made(threads=0, **how):
        recorder = where(bytes_per_thread=64 * KB, **how)
        recorder["on_pool"] = 1
        recorder["threads_on_pool"] = threads
        return recorder

    return made


@mark.parametrize("said, pieces", [(0, 4), (2, 2), (9, 9)])
def test_large_call_has_a_piece_for_each_thread(on_pool, said, pieces):
    made = on_pool(said)
    made.asked(*operands(1 << 18))
    assert (made["loops"], made["pieces_of_loop"], made["jobs"]) == (1, pieces, 0)


def test_no_more_threads_than_pay(on_pool):
    made = on_pool(9)
    made.asked(*operands(3 * 64 * KB // 13 + 1))  # of 13 bytes each
    assert made["pieces_of_loop"] == 3


@mark.parametrize("said, elements", [(4, 4 * KB), (1, 1 << 18)])
def test_call_of_one_thread_does_not_ask_the_pool(on_pool, said, elements):
    made = on_pool(said)
    made.asked(*operands(elements))
    assert (made["loops"], made["jobs"]) == (0, 0)


def test_pieces_at_the_same_time_have_memory_of_their_own(on_pool):
    """The recorder begins all pieces inside of each other, in the middle of a kernel."""
    made = on_pool(5)
    made.asked(*TRANSPOSED)
    assert (made["pieces_of_loop"], made["taken"], made["given_back"]) == (5, 1, 1)


def test_pool_that_runs_nothing_leaves_the_work_to_the_caller(on_pool):
    made = on_pool(4)
    made["is_shut_down"] = 1
    made.asked(*operands(1 << 18))
    assert made["loops"] == 1


def test_kernel_that_fails_in_a_piece_fails_the_call(on_pool):
    made = on_pool(4)
    made["fails"] = 3
    cond, x, y = operands(1 << 18)
    assert made.select(cond, x, y, np.empty_like(x)) == FAILED


@needs_fences
def test_every_piece_ends_with_a_fence(on_pool):
    made = on_pool(3)
    made.asked(*operands(1 << 18))
    assert made["fences"] == 3 + 1  # and the caller's own look at what is left
