"""Calls on the OpenMP team of the program: when they go there, and what they do to it."""

from pytest import fixture

from tests.support import c_half, new_folder
from tests.support.runtime_standin import compile_c

SETUP = """
    import threading

    openmp = ctypes.CDLL(os.environ["OPENMP"])

    def number(name, library=openmp):
        return ctypes.c_int.in_dll(library, name)

    pool.let_pass.argtypes = (ctypes.c_int64,)
    HELPERS, TEAM, ALONE = 40, 21, 10  # ten times the threads, and one for a team
"""


@fixture(scope="module")
def openmp():
    options = ("-shared", "-pthread", "-ftls-model=initial-exec")
    return compile_c(c_half.DRIVERS / "fake_openmp.c", new_folder() / "openmp.so", *options)


@fixture
def run(openmp):
    pool = c_half.built("pool_team_test.c")
    return lambda code, wish="1": c_half.run(pool, SETUP, code, OPENMP=openmp, TE_SELECT_TEAM=wish)


def test_team_does_calls_that_helpers_came_late_to(run):
    run("""
        openmp.use_runtime(1)
        assert pool.call(4) == HELPERS
        assert pool.crowd() == 1
        tasks = len(os.listdir("/proc/self/task"))
        assert [pool.call(4) for _ in range(20)] == [TEAM] * 20
        assert (number("regions").value, number("last_number").value) == (20, 0)  # its own number
        assert len(os.listdir("/proc/self/task")) == tasks
    """)


def test_team_does_calls_after_one_that_waited_for_a_helper(run):
    run("""
        openmp.use_runtime(1)
        assert pool.call(4) == HELPERS
        assert pool.stall() == 1
        assert pool.call(4) == TEAM
    """)


def test_helpers_do_calls_again_once_the_team_sleeps(run):
    run("""
        openmp.use_runtime(1)
        pool.call(4)
        pool.crowd()
        assert pool.call(4) == TEAM
        number("team_is_at_work", pool).value = 0
        assert pool.is_crowded()
        assert pool.call(4) == HELPERS
        assert number("regions").value == 1
    """)


def test_thread_that_has_not_used_the_runtime_starts_no_team(run):
    run("""
        pool.call(4)
        assert pool.crowd() == 1
        assert pool.call(4) == HELPERS
        assert number("regions").value == 0
    """)


def test_one_team_is_started_by_mistake_and_no_other(run):
    run("""
        openmp.use_runtime(0)
        pool.call(4)
        pool.crowd()
        assert pool.call(4) == TEAM
        seen = []

        def other():
            openmp.use_runtime(0)
            pool.crowd()
            seen.append(pool.call(4))

        pool.crowd()
        seen.append(pool.call(4))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [HELPERS] * 2
        assert number("regions").value == 1
    """)


def test_late_team_is_not_asked_for_a_while(run):
    run("""
        openmp.use_runtime(1)
        pool.call(4)
        pool.crowd()
        pool.the_clock.restype = ctypes.c_void_p
        late = ctypes.c_void_p.in_dll(openmp, "late_clock")
        late.value = pool.the_clock()
        for ns in (200_000, 200_001):
            number("late").value = ns
            assert pool.call(4) == TEAM
        late.value = None
        pool.crowd()
        assert pool.call(4) == HELPERS
        for ms, crew in ((1, HELPERS), (1, TEAM)):
            pool.let_pass(ms * 1_000_000)
            pool.crowd()
            assert pool.call(4) == crew
        late.value = pool.the_clock()
        for ms in (4, 8, 16, 31, 62, 124, 248, 256, 256):  # twice as long, up to a limit
            pool.crowd()
            assert pool.call(4) == TEAM
            pool.let_pass((ms - 1) * 1_000_000)
            pool.crowd()
            assert pool.call(4) == HELPERS, ms
            pool.let_pass(1_000_000)
    """)


def test_limit_of_the_program_is_kept(run):
    run("""
        openmp.use_runtime(1)
        pool.call(4)
        pool.crowd()
        number("limit").value = 1
        assert pool.call(4) == HELPERS
        assert number("regions").value == 0
        number("limit").value = 2
        pool.crowd()
        assert pool.call(2) == TEAM
    """)


def test_call_in_a_region_of_a_found_runtime_is_alone(run):
    run("""
        openmp.use_runtime(1)
        pool.call(4)
        pool.crowd()
        number("is_in_region").value = 1
        assert pool.call(4) == ALONE
    """)


def test_runtime_stays_loaded_and_a_child_runs_alone(run):
    run("""
        import _ctypes

        openmp.use_runtime(1)
        pool.call(4)
        pool.crowd()
        assert pool.call(4) == TEAM
        _ctypes.dlclose(openmp._handle)
        assert pool.call(4) == TEAM
        child = os.fork()
        if not child:
            os._exit(pool.call(4) != ALONE)
        assert os.waitpid(child, 0)[1] == 0
        assert pool.call(4) == TEAM
    """)


def test_team_is_left_alone_if_the_user_says_so(run):
    code = """
        openmp.use_runtime(1)
        pool.call(4)
        assert pool.crowd() == int(os.environ["TE_SELECT_TEAM"] != "0")
    """
    for wish in ("0", "1"):
        run(code, wish)
