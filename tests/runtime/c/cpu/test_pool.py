"""The pool: every task is done once, and no call waits for a thread that has not come."""

import faulthandler
import os
from concurrent.futures import ThreadPoolExecutor

from pytest import fixture, mark

from tests.support.c_half import built, load, run

SOURCES = ("cpu/pool.c", "cpu/pool_cores.c", "cpu/pool_team.c")
OWN = ("-Wl,-Bsymbolic",)  # its pthread_create comes before that of libc


@fixture(autouse=True)
def watched():
    """End a process that waits too long for a lost task, and say where it waited."""
    faulthandler.dump_traceback_later(200, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@fixture
def path():
    return built("pool_test.c", SOURCES)


@fixture
def pool(path):
    return load(path)


@mark.parametrize("threads", [1, 2, 3, 7, 64, 10_000])
@mark.parametrize("tasks", [1, 2, 3, 8, 63, 1000])
def test_every_task_is_done_once(pool, tasks, threads):
    for fails in (0, 1, tasks):
        assert pool.try_once(tasks, threads, fails, 0, 0) == 0


def test_calls_at_once_do_not_mix(pool):
    """ctypes releases the interpreter's lock, so the calls run at the same time."""
    with ThreadPoolExecutor(8) as callers:
        wrong = callers.map(lambda k: pool.try_once(1 + k % 99, 4, 0, 0, 200), range(2000))
        assert not any(wrong)


def test_task_that_runs_tasks_does_those_itself(pool):
    for _ in range(20):
        assert pool.try_once(64, 3, 0, 1, 0) == 0


def test_no_more_threads_take_part_than_a_call_asked_for(pool):
    """Although an earlier call has started more threads."""
    assert 1 <= pool.takers(4) <= 4
    for _ in range(100):
        assert 1 <= pool.takers(2) <= 2


def test_sleeping_helper_is_woken(pool):
    """Within some calls, because the processors may be busy with other work."""
    assert any(pool.both_at_once() for _ in range(200))


def test_helper_that_never_starts_is_not_waited_for():
    never = built("pool_test.c", SOURCES, "-DNO_THREAD_EVER_RUNS", *OWN)
    code = """
        for k in range(200):
            assert pool.try_once(50, 4, 0, 0, 0) == 0
    """
    run(never, code)


def test_refused_threads_are_not_taken_for_late_ones():
    """Otherwise calls would run alone for a while, as if the cores had other work."""
    none = built("pool_test.c", SOURCES, "-DNO_THREAD_CAN_BE_MADE", *OWN)
    code = """
        for k in range(20):
            assert pool.at_hand(4) == 4
            assert pool.try_once(64, 4, 0, 0, 0) == 0
    """
    run(none, code, TE_SELECT_NUM_THREADS="4")


def test_forked_child_runs_alone_and_its_parent_goes_on(path):
    code = """
        for k in range(20):
            assert pool.try_once(64, 4, 0, 0, 100) == 0
            child = os.fork()
            if not child:
                right = pool.at_hand(4) == 1 and not any(
                    pool.try_once(64, 4, 0, 0, 0) for _ in range(50)
                )
                os._exit(not right)
            assert os.waitpid(child, 0)[1] == 0
    """
    run(path, code)


def test_library_that_a_forked_child_loads_runs_alone_too(path, tmp_path):
    copy = tmp_path / "copy.so"
    copy.write_bytes(path.read_bytes())
    code = f"""
        assert pool.try_once(64, 4, 0, 0, 100) == 0
        child = os.fork()
        if not child:
            other = ctypes.CDLL({str(copy)!r})
            os._exit(other.at_hand(4) != 1 or other.try_once(64, 4, 0, 0, 0))
        assert os.waitpid(child, 0)[1] == 0
    """
    run(path, code)


def test_signals_go_to_the_threads_of_the_program(path):
    """Python runs handlers in its main thread, and a helper must not receive the signal instead."""
    code = """
        import signal
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        while len(seen) < 100:
            assert pool.try_once(64, 4, 0, 0, 100) == 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        for task in os.listdir("/proc/self/task"):
            status = open(f"/proc/self/task/{task}/status").read()
            if "Name:\\tte_select\\n" in status:
                blocked = int(status.split("SigBlk:\\t")[1].split()[0], 16)
                assert blocked >> (signal.SIGALRM - 1) & 1
    """
    run(path, code)


def test_two_libraries_share_one_pool(path, tmp_path):
    """Threads of several pools would hinder each other."""
    copy = tmp_path / "copy.so"
    copy.write_bytes(path.read_bytes())
    code = f"""
        second = ctypes.CDLL({str(copy)!r})
        before = len(os.listdir("/proc/self/task"))
        for k in range(50):
            assert pool.try_once(64, 3, 0, 0, 100) == second.try_once(64, 3, 0, 0, 100) == 0
        assert len(os.listdir("/proc/self/task")) == before + 2
    """
    run(path, code)


@mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")
def test_helpers_wake_on_other_cpus_than_the_callers(path):
    code = """
        import time
        mine = os.sched_getaffinity(0)
        for cpu in (min(mine), max(mine)) * 5:
            os.sched_setaffinity(0, {cpu})  # moves this thread there
            os.sched_setaffinity(0, mine)
            time.sleep(0.02)  # the helpers sleep then
            assert pool.try_once(64, 3, 0, 0, 100) == 0
        for each in map(os.sched_getaffinity, helpers(2)):
            assert each < mine and len(each) == len(mine) - 1, (each, mine)
        assert os.sched_getaffinity(0) == mine
    """
    run(path, code)


HELPERS = """
    import time

    def policies():
        return [os.sched_getscheduler(id) for id in helpers(2)]

    def until(policy):
        end = time.monotonic() + 60
        while policies() != [policy] * 2:
            assert pool.try_once(64, 3, 0, 0, 1000) == 0
            assert time.monotonic() < end

    def alone_until_helpers_answer():
        seen = set()
        end = time.monotonic() + 60
        while pool.at_hand(3) == 1:
            seen.update(policies())
            assert time.monotonic() < end
            time.sleep(0.0005)
        return seen

    assert pool.try_once(64, 3, 0, 0, 1000) == 0
    time.sleep(0.02)
"""


def test_helpers_answer_and_stop_nobody_until_then(path):
    code = """
        for k in range(5):
            assert pool.at_hand(3) == 3
            until(os.SCHED_OTHER)
            pool.wrap()
            pool.stall()
            assert pool.at_hand(3) == 1
            assert os.SCHED_BATCH in alone_until_helpers_answer()
    """
    run(path, HELPERS, code)
