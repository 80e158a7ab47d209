"""When calls run alone because the cores have other work, and when they have helpers again."""

from os import SCHED_BATCH, SCHED_IDLE, SCHED_OTHER

import pytest

from tests.support import c_half

MS = 1_000_000
STALL, NO_STALL = 200_001, 200_000
AT_ONCE = 400_000
FAIR = 48  # tasks that are the helpers' share


@pytest.fixture
def pool():
    """A new pool with three helpers."""
    path = c_half.built("pool_cores_test.c")
    return c_half.copied(path, teach="iIq>q", let_pass="q", left_beside="Qi")


def ask(pool):
    """Let a call stall, and another one ask the helpers, after the time alone."""
    pool.teach(1, FAIR, STALL)
    answer(pool)
    pool.let_pass(2 * MS)
    pool.are_free()


def answer(pool):
    for helper in (1, 2, 3):
        pool.answer(helper)


def policies(pool):
    return {pool.policy(helper) for helper in (1, 2, 3)}


def test_stopped_thread_makes_calls_run_alone(pool):
    assert pool.teach(1, FAIR, NO_STALL) == 0
    assert [pool.teach(1, FAIR, STALL) for _ in range(3)] == [2 * MS] * 3


def test_four_calls_with_little_help_make_the_next_run_alone(pool):
    little = FAIR // 4 - 1
    enough = FAIR // 4
    assert [pool.teach(1, little, 0) for _ in range(3)] == [0, 0, 0]
    assert pool.teach(1, enough, 0) == 0
    for _ in range(2):
        assert [pool.teach(1, little, 0) for _ in range(4)] == [0, 0, 0, 2 * MS]
        answer(pool)
        pool.let_pass(2 * MS)
        assert not pool.are_free()
        answer(pool)
        assert pool.are_free()


def test_helpers_that_had_to_be_woken_are_not_blamed(pool):
    assert [pool.teach(0, 0, 0) for _ in range(9)] == [0] * 9


def test_helpers_are_asked_after_2_ms(pool):
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS - 1)
    assert (pool.are_free(), pool.times_asked()) == (0, 0)
    pool.let_pass(1)
    assert (pool.are_free(), pool.times_asked()) == (0, 1)
    assert (pool.are_free(), pool.times_asked()) == (0, 1)


def test_cores_are_free_once_three_of_four_helpers_have_come(pool):
    ask(pool)
    pool.let_pass(AT_ONCE - 1)
    pool.answer(1)
    pool.answer(2)  # two of three
    assert not pool.are_free()
    pool.answer(3)
    pool.let_pass(100 * MS)  # the next call may be much later
    assert pool.are_free()
    assert pool.teach(1, FAIR, 0) == 0


def test_helpers_that_come_late_are_asked_again_after_2_ms(pool):
    ask(pool)
    pool.let_pass(AT_ONCE)
    answer(pool)
    assert not pool.are_free()
    pool.let_pass(1)
    assert not pool.are_free()
    pool.let_pass(2 * MS - 1)
    assert (pool.are_free(), pool.times_asked()) == (0, 1)
    pool.let_pass(1)
    assert (pool.are_free(), pool.times_asked()) == (0, 2)


def test_answer_from_before_another_stall_does_not_count(pool):
    ask(pool)
    answer(pool)
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS)
    assert [pool.are_free() for _ in range(2)] == [0, 0]
    assert pool.times_asked() == 2


def test_calls_have_helpers_again_after_256_ms(pool):
    pool.teach(1, FAIR, STALL)
    alone = 0
    while not pool.are_free() and alone < 1000:
        pool.let_pass(MS)
        alone += 1
    assert 256 <= alone <= 260


def test_helper_that_comes_late_stops_nobody_until_its_next_job(pool):
    pool.teach(1, FAIR, STALL)
    assert pool.times_told() == 1
    assert policies(pool) == {SCHED_OTHER}
    answer(pool)
    assert policies(pool) == {SCHED_BATCH}
    pool.let_pass(2 * MS)
    pool.are_free()
    assert (pool.times_told(), pool.all_were_woken()) == (2, 1)
    pool.let_pass(AT_ONCE)
    answer(pool)
    assert policies(pool) == {SCHED_BATCH}
    pool.take_part(1)
    assert [pool.policy(helper) for helper in (1, 2)] == [SCHED_OTHER, SCHED_BATCH]


def test_helper_that_comes_at_once_may_stop_others_again(pool):
    ask(pool)
    answer(pool)
    assert pool.are_free()
    assert policies(pool) == {SCHED_OTHER}


def test_first_answer_does_not_count(pool):
    pool.teach(1, FAIR, STALL)
    pool.let_pass(2 * MS)
    pool.are_free()
    answer(pool)
    assert not pool.are_free()
    answer(pool)
    assert pool.are_free()


def test_policy_that_a_program_chose_is_kept(pool):
    for helper, chosen in ((1, SCHED_IDLE), (2, SCHED_BATCH)):
        pool.choose(helper, chosen)
    ask(pool)
    answer(pool)
    assert pool.are_free()
    for helper, chosen in ((1, SCHED_IDLE), (2, SCHED_BATCH), (3, SCHED_OTHER)):
        pool.take_part(helper)
        assert pool.policy(helper) == chosen


def test_policy_that_could_not_be_restored_is_restored_later(pool):
    ask(pool)
    for refused, policy in ((1, SCHED_BATCH), (0, SCHED_OTHER)):
        pool.refuse(refused)
        pool.take_part(1)
        assert pool.policy(1) == policy


@pytest.mark.parametrize(
    "on, allowed, by, left",
    [
        (0, 0b11, 0, 0b10),
        (0, 0b10001, 0, 0b10000),
        (1, 0b111, 2, 0b001),  # nor on the CPU of a helper that wakes it
        (0, 0b11, 1, 0b10),  # unless there is no other
        (4, 0b10000, 4, 0),  # the caller has no other CPU: it stays
    ],
)
def test_helpers_run_on_cpus_of_the_caller_but_not_on_its_own(pool, on, allowed, by, left):
    pool.wake_apart(on, allowed, by, 1)
    assert pool.cpus_of(1) == left


def test_helper_is_moved_when_it_has_begun_and_not_again(pool):
    for identity, left in ((0, 0), (1, 0b10), (1, 0)):
        pool.begin(1, identity)
        pool.wake_apart(0, 0b11, 0, 1)
        assert pool.cpus_of(1) == left


def test_helpers_of_large_machines_stay_where_they_are_put(pool):
    assert not pool.notes_large_machine()


def test_a_core_is_left_to_each_thread_that_called_for_2_ms(pool):
    """There are 8 cores."""
    assert pool.left_beside(0, 8) == 8
    assert pool.left_beside(0b1001, 8) == 6
    assert (pool.left(7), pool.left(6), pool.left(2)) == (6, 6, 2)
    pool.let_pass(2 * MS - 1)
    assert pool.left(8) == 6
    pool.let_pass(1)
    assert pool.left(8) == 8


def test_threads_that_no_longer_call_are_forgotten_in_time(pool):
    assert pool.left_beside(0xFF, 8) == 0
    assert pool.left_beside(0, 8) == 0  # a job without others says nothing of them
    pool.let_pass(2 * MS)
    assert pool.left_beside(1, 8) == 7
