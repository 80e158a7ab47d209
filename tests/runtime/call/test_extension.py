"""Memory of large results: kept for the next ones, given back, and nobody else's meanwhile."""

import sys
import textwrap
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from te_select import Workload, where
from te_select.runtime.call import _extension as extension
from te_select.runtime.call import extension as module
from tests.support.machines import needs_forks, needs_limits
from tests.support.programs import ended
from tests.support.runtime_standin import kernel

LARGE = 9_000_000  # elements of four bytes: more than 32 MiB
SMALL = 8_000_000
SECONDS = 5  # one is promised, and the machine may be busy


@pytest.fixture(autouse=True)
def own_cache(family):
    """Kernels that are built: here it is the memory of their results that is tried."""


@pytest.fixture
def operands():
    cond = np.zeros(LARGE, bool)
    cond[::3] = True
    return cond, np.arange(LARGE, dtype="f4"), np.float32(-1)


@pytest.fixture(autouse=True)
def nothing_is_kept():
    extension.keep_memory(256 << 20, True)
    yield
    extension.keep_memory(module.most_kept(), True)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


START = f"""
import numpy as np, te_select
from te_select.runtime.call import extension as module
extension, where, LARGE, SECONDS = module.extension, te_select.where, {LARGE}, {SECONDS}
"""


def python(code: str, **variables: str) -> str:
    """Run a program that begins with the names of this file."""
    done = ended(sys.executable, "-c", START + textwrap.dedent(code), **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def wait_until_nothing_is_kept() -> None:
    end = time.monotonic() + SECONDS
    while extension.bytes_kept() and time.monotonic() < end:
        time.sleep(0.05)
    assert not extension.bytes_kept()


def test_memory_of_a_dead_result_is_that_of_the_next(operands):
    first = where(*operands)
    expected, place = first.tobytes(), address(first)
    assert not extension.bytes_kept()
    del first
    assert extension.bytes_kept() >= 4 * LARGE
    again = where(*operands)
    assert address(again) == place and not extension.bytes_kept()
    assert again.tobytes() == expected


@pytest.mark.parametrize("number", [np.float32(-1), np.array(-1, "f4")])
def test_kernels_take_it_too(operands, number):
    k = kernel(Workload((LARGE,), (LARGE,), (), "float32"))
    first = k(*operands[:2], number)
    place = address(first)
    del first
    assert address(k(*operands[:2], number)) == place


def test_smaller_blocks_are_the_c_librarys(operands):
    cond, x, y = operands
    where(cond[:SMALL], x[:SMALL], y)
    assert not extension.bytes_kept()


@pytest.mark.parametrize(("share", "fits"), [(1.0, True), (0.9, True), (0.7, False), (1.1, False)])
def test_block_is_taken_if_it_is_little_too_large(operands, share, fits):
    cond, x, y = (np.concatenate([operands[0]] * 2), np.concatenate([operands[1]] * 2), -1.0)
    first = where(cond[: LARGE + LARGE // 2], x[: LARGE + LARGE // 2], y)
    place, elements = address(first), int((LARGE + LARGE // 2) * share)
    del first
    again = where(cond[:elements], x[:elements], y)
    assert (address(again) == place) == fits
    assert again.tobytes() == np.where(cond[:elements], x[:elements], np.float32(y)).tobytes()


def test_memory_is_given_back_after_a_while(operands):
    for _ in range(2):  # the thread that gives it back starts again
        where(*operands)
        assert extension.bytes_kept()
        wait_until_nothing_is_kept()


def test_no_more_is_kept_than_the_limit(operands):
    size = 4 * LARGE
    extension.keep_memory(int(2.5 * size), True)
    results = [where(*operands) for _ in range(4)]
    places = [address(each) for each in results]
    while results:
        results.pop(0)
        assert extension.bytes_kept() <= 2.5 * size
    assert extension.bytes_kept() >= 2 * size
    newest = [where(*operands), where(*operands)]
    assert [address(each) for each in newest] == places[:1:-1]


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array[5:],
        memoryview,
        np.from_dlpack,
        lambda array: np.asarray(_Interface(array)),
        lambda array: array.T.view("u1"),
    ],
    ids=["slice", "memoryview", "dlpack", "interface", "view"],
)
def test_memory_that_is_still_seen_is_not_given_away(operands, hold):
    first = where(*operands)
    place, held = address(first), hold(first)
    del first
    assert not extension.bytes_kept()
    before = bytes(np.asarray(held)[:1000])
    assert address(where(operands[0], 7, operands[1])) != place
    assert bytes(np.asarray(held)[:1000]) == before


class _Interface:
    def __init__(self, array):
        self.array = array
        self.__array_interface__ = array.__array_interface__


@pytest.mark.parametrize("elements", [10, LARGE + 1, 3 * LARGE])
def test_result_may_be_resized(operands, elements):
    result = where(*operands)
    expected = result[: min(elements, LARGE)].copy()
    result.resize(elements, refcheck=False)
    assert np.array_equal(result[: expected.size], expected) and not result[expected.size :].any()
    del result
    kept = extension.bytes_kept()
    assert (kept >= 4 * elements) == (4 * elements > 1 << 25)


def test_thread_keeps_its_mask_of_signals_when_a_result_dies():
    said = python("""
        import signal
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        where(np.zeros(LARGE, bool), np.ones(LARGE, "f4"), 2)
        assert extension.bytes_kept()  # and a thread has been started that gives it back
        print(signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before)
        """)
    assert said == "True\n"


def test_result_may_die_in_another_thread(operands):
    results = [where(*operands)]
    place = address(results[0])
    with ThreadPoolExecutor(1) as another:
        another.submit(results.clear).result()
    assert address(where(*operands)) == place


def test_threads_never_share_a_result(operands):
    cond, x, _ = operands
    wrong = []

    def work(number: int) -> None:
        for step in range(6):
            part = LARGE - number * 1000 - step
            mark = np.float32(10 * number + step)
            result = where(cond[:part], x[:part], mark)
            if not (result[1::3] == mark).all() or not (result[::3] == x[:part:3]).all():
                wrong.append((number, step))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert not wrong


@needs_forks
def test_forked_child_keeps_nothing_of_its_parent():
    said = python("""
        import os, sys, time
        cond = np.arange(LARGE) % 2 == 0
        where(cond, 1.0, np.zeros(LARGE))
        kept = extension.bytes_kept()
        child = os.fork()
        if not child:
            assert extension.bytes_kept() == 0
            for _ in range(2):
                assert (where(cond, 1.0, np.zeros(LARGE)) == cond).all()
            assert extension.bytes_kept() > 0
            end = time.monotonic() + SECONDS
            while extension.bytes_kept() and time.monotonic() < end:
                time.sleep(0.05)
            assert extension.bytes_kept() == 0  # its own thread gives it back
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert kept > LARGE
        print("done")
        """)
    assert said == "done\n"


def test_resident_memory_falls_after_del():
    said = python(
        f"""
        import time
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * 4096
        cond, x = np.zeros(4 * LARGE, bool), np.ones(4 * LARGE, "f4")
        where(cond[:LARGE], x[:LARGE], x[:LARGE])
        time.sleep(2)
        before = resident()
        result = where(cond, x, x)
        assert resident() - before > 15 * LARGE
        del result
        end = time.monotonic() + {SECONDS}
        while resident() - before > LARGE and time.monotonic() < end:
            time.sleep(0.05)
        print(resident() - before < LARGE)
        """,
        TE_SELECT_KEEP_MEMORY="1000",
    )
    assert said == "True\n"


def test_memory_is_counted_by_tracemalloc(operands):
    tracemalloc.start()
    try:
        for _ in range(2):  # new memory, and kept memory
            before = tracemalloc.get_traced_memory()[0]
            result = where(*operands)
            assert tracemalloc.get_traced_memory()[0] - before > 4 * LARGE
            del result
            assert tracemalloc.get_traced_memory()[0] - before < LARGE
    finally:
        tracemalloc.stop()


@needs_limits
def test_nothing_is_kept_where_addresses_are_limited():
    said = python(
        """
        import resource
        cond, x = np.zeros(LARGE, bool), np.ones(LARGE, "f4")
        for limit in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            before = resource.getrlimit(limit)
            resource.setrlimit(limit, (1 << 40, before[1]))
            where(cond, x, 2)
            assert not extension.bytes_kept()
            resource.setrlimit(limit, before)
            where(cond, x, 2)
            assert extension.bytes_kept()
            extension.keep_memory(1 << 30, True)
        print("done")
        """
    )
    assert said == "done\n"


@needs_limits
@pytest.mark.parametrize("elements", ["LARGE // 2", "3 * LARGE", "12 * LARGE"])
def test_what_is_kept_helps_before_a_memory_error(elements):
    said = python(
        f"""
        import resource
        count = {elements}
        cond, x = np.zeros(count, bool), np.ones(count, "f4")
        where(cond[:9], x[:9], 2)  # everything is loaded
        kept = [extension.empty((2 * LARGE,), np.dtype("f4")) for _ in range(8)]
        kept.clear()
        assert extension.bytes_kept() > 60 * LARGE
        now = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (now + LARGE, -1))
        result = where(cond, x, 2)  # it fits only in the place of what is kept
        assert result[0] == result[-1] == 2 and extension.bytes_kept() == 0
        results = []
        try:
            while True:
                results.append(where(cond, x, 2))
        except MemoryError:
            print("MemoryError")
        assert (where(cond[:5], x[:5], 3) == 3).all()
        """,
        TE_SELECT_KEEP_MEMORY="600",
    )
    assert said == "MemoryError\n"


HANDLER = """
import ctypes
class Functions(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free")]
class Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8),
                ("functions", Functions)]
libc, taken = ctypes.CDLL(None), []
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def malloc(_, size):
    taken.append(size)
    return libc.malloc(size)
pointers = [
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(malloc),
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(
        lambda _, address, size: libc.free(address)),
]
new, free = (ctypes.cast(each, ctypes.c_void_p).value for each in pointers)
handler = Handler(b"users", 1, Functions(None, new, None, None, free))
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
table = api.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(
    ctypes.c_void_p.from_address(table + 304 * 8).value)
capsule = api.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)
"""


def test_handler_of_the_user_wins_and_is_in_effect_afterwards():
    said = python(
        HANDLER
        + textwrap.dedent("""
        from numpy._core.multiarray import get_handler_name
        cond, x = np.zeros(LARGE, bool), np.ones(LARGE, "f4")
        assert get_handler_name(where(cond, x, x)) == "te_select"
        assert get_handler_name() == "default_allocator"
        default = set_handler(capsule)
        assert get_handler_name(where(cond, x, x)) == "users"
        assert max(taken) == 4 * LARGE
        assert get_handler_name() == "users"
        set_handler(default)
        assert get_handler_name(where(cond, x, x)) == "te_select"
        print("done")
        """)
    )
    assert said == "done\n"


def test_variable_says_how_much_is_kept():
    code = "print(module.most_kept() >> 20)"
    assert python(code, TE_SELECT_KEEP_MEMORY="77") == "77\n"
    assert 0 < int(python(code, TE_SELECT_KEEP_MEMORY="")) <= 400
    wrong = python(code, TE_SELECT_KEEP_MEMORY="all")
    assert "TE_SELECT_KEEP_MEMORY is 'all'; expected a whole number of MiB, 0 for none" in wrong
    nothing = """
        where(np.zeros(LARGE, bool), np.ones(LARGE, "f4"), 2)
        print(extension.bytes_kept())
        """
    assert python(nothing, TE_SELECT_KEEP_MEMORY="0") == "0\n"


def test_kept_pages_are_the_systems_if_it_is_short_of_memory(operands):
    def lazily_freed() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("LazyFree:"))

    before = lazily_freed()
    result = where(*operands)
    assert lazily_freed() == before
    del result
    assert extension.bytes_kept() and lazily_freed() - before > 3.9 * LARGE
    again = where(*operands)
    assert lazily_freed() - before < LARGE and again[1] == -1


def test_nothing_is_kept_if_the_system_counts_what_is_unused(monkeypatch, tmp_path):
    monkeypatch.delenv(module.VARIABLE, raising=False)
    told = tmp_path / "overcommit_memory"
    monkeypatch.setattr(module, "_OVERCOMMIT", told)
    assert module.most_kept() == 400 << 20
    for text, expected in (("0\n", 400 << 20), ("1\n", 400 << 20), ("2\n", 0)):
        told.write_text(text)
        assert module.most_kept() == expected


def test_import_lives_where_the_system_says_nothing_of_memory():
    code = """
        import importlib, os, resource
        def refused(*_):
            raise OSError(1, "refused")
        os.sysconf, resource.getrlimit = lambda _: -1, refused
        importlib.reload(module)
        print(module.most_kept() >> 20)
        """
    assert python(code, TE_SELECT_KEEP_MEMORY="") == "400\n"


@pytest.mark.parametrize("args", [(), (1,), ("1", True), (-1, True)])
def test_wrong_limits_are_refused(args):
    with pytest.raises((TypeError, OverflowError)):
        extension.keep_memory(*args)


@pytest.mark.parametrize("args", [(), ((3,),), ([3], np.dtype("f4")), ((3,), "f4"), ((3.0,), "f4")])
def test_wrong_shapes_of_arrays_are_refused(args):
    with pytest.raises(TypeError):
        extension.empty(*args)


def test_arrays_of_any_shape_are_made():
    for shape in ((), (0,), (2, 3), (3, 0, 2), (1,) * 64):
        made = extension.empty(shape, np.dtype("i2"))
        assert made.shape == shape and made.dtype == np.int16
    for shape in ((-1,), (1,) * 65, (1 << 40, 1 << 40)):
        with pytest.raises(ValueError):
            extension.empty(shape, np.dtype("i2"))
    with pytest.raises(MemoryError):
        extension.empty((1 << 50,), np.dtype("i2"))
