"""Memory of large results: kept for the next ones, given back, and nobody else's meanwhile."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent
from time import monotonic, sleep

import numpy as np
from pytest import fixture, mark, raises

from te_select import where
from te_select.runtime.call import _extension as extension
from te_select.runtime.call import extension as module
from tests.support import flat_and_scalar, programs
from tests.support.machines import needs_forks, needs_limits
from tests.support.runtime_standin import kernel

LARGE = 9_000_000  # elements of four bytes: more than 32 MiB
SMALL = 8_000_000
FLOAT = np.dtype("f4")
SECONDS = 5  # one is promised, and the machine may be busy


@fixture(autouse=True)
def own_cache(family):
    """Kernels that are built: here it is the memory of their results that is tried."""


@fixture
def operands():
    cond = np.zeros(LARGE, bool)
    cond[::3] = True
    return cond, np.arange(LARGE, dtype="f4"), np.float32(-1)


@fixture(autouse=True)
def nothing_is_kept():
    extension.keep_memory(256 << 20, True)
    yield
    extension.keep_memory(module.most_kept(), True)


def address(array):
    return array.__array_interface__["data"][0]


START = f"""
import numpy as np, te_select
from te_select.runtime.call import extension as module
extension, where, LARGE, SECONDS = module.extension, te_select.where, {LARGE}, {SECONDS}
"""


def python(code, **variables):
    """Run a program that begins with the names of this file."""
    return programs.python(START + dedent(code), **variables)


def wait_until_nothing_is_kept():
    end = monotonic() + SECONDS
    while extension.bytes_kept() and monotonic() < end:
        sleep(0.05)
    assert not extension.bytes_kept()


@mark.parametrize("select", [where, "kernel"])
def test_memory_of_a_dead_result_is_that_of_the_next(operands, select):
    if select == "kernel":
        select = kernel(flat_and_scalar(LARGE))
    first = select(*operands)
    expected = first.tobytes()
    place = address(first)
    assert not extension.bytes_kept()
    del first
    assert extension.bytes_kept() >= 4 * LARGE
    again = select(*operands)
    assert address(again) == place and not extension.bytes_kept()
    assert again.tobytes() == expected


def test_smaller_blocks_are_the_c_librarys(operands):
    cond, x, y = operands
    where(cond[:SMALL], x[:SMALL], y)
    assert not extension.bytes_kept()


@mark.parametrize("share, fits", [(1.0, True), (0.81, True), (0.79, False), (1.1, False)])
def test_block_is_taken_if_it_is_little_too_large(operands, share, fits):
    cond = np.concatenate([operands[0]] * 2)
    x = np.concatenate([operands[1]] * 2)
    y = -1.0
    first = where(cond[: LARGE + LARGE // 2], x[: LARGE + LARGE // 2], y)
    place = address(first)
    elements = int((LARGE + LARGE // 2) * share)
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


@mark.parametrize("elements", [10, LARGE + 1, 3 * LARGE])
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


def test_threads_never_share_a_result(operands):
    cond, x, _ = operands
    wrong = []

    def work(number):
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
        import os, time
        cond, x = np.arange(LARGE) % 2 == 0, np.zeros(LARGE)
        where(cond, 1.0, x)
        kept = extension.bytes_kept()
        child = os.fork()
        if not child:
            assert extension.bytes_kept() == 0
            assert (where(cond, 1.0, x) == cond).all()
            assert extension.bytes_kept() > 0
            end = time.monotonic() + SECONDS
            while extension.bytes_kept() and time.monotonic() < end:
                time.sleep(0.05)
            os._exit(extension.bytes_kept() != 0)  # its own thread gives it back
        print(os.waitpid(child, 0)[1], kept > LARGE)
        """)
    assert said == "0 True\n"


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
@mark.parametrize("elements", ["LARGE // 2", "12 * LARGE"])
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
        results = [where(cond, x, 2)]  # it fits only in the place of what is kept
        assert results[0][-1] == 2 and extension.bytes_kept() == 0
        try:
            while True:
                results.append(where(cond, x, 2))
        except MemoryError:
            print("MemoryError")
        """,
        TE_SELECT_KEEP_MEMORY="600",
    )
    assert said == "MemoryError\n"


HANDLER = """
import ctypes
from numpy._core.multiarray import get_handler_name
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
table = api.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
def of_table(place, *takes):
    function = ctypes.c_void_p.from_address(table + place * 8).value
    return ctypes.PYFUNCTYPE(ctypes.py_object, *takes)(function)
set_handler, get_handler = of_table(304, ctypes.py_object), of_table(305)
own = ctypes.create_string_buffer(  # the functions of NumPy's own, by another name
    ctypes.string_at(api.PyCapsule_GetPointer(get_handler(), b"mem_handler"), 168))
own[:6] = b"users" + bytes(1)
capsule = api.PyCapsule_New(ctypes.addressof(own), b"mem_handler", None)
"""


def test_handler_of_the_user_wins_and_is_in_effect_afterwards():
    said = python(
        HANDLER
        + dedent("""
        cond, x = np.zeros(LARGE, bool), np.ones(LARGE, "f4")
        assert get_handler_name(where(cond, x, x)) == "te_select"
        assert get_handler_name() == "default_allocator"
        default = set_handler(capsule)
        assert get_handler_name(where(cond, x, x)) == get_handler_name() == "users"
        set_handler(default)
        assert get_handler_name(where(cond, x, x)) == "te_select"
        print("done")
        """)
    )
    assert said == "done\n"


def test_kept_pages_are_the_systems_if_it_is_short_of_memory(operands):
    def lazily_freed():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("LazyFree:"))

    before = lazily_freed()
    result = where(*operands)
    assert lazily_freed() == before
    del result
    assert extension.bytes_kept() and lazily_freed() - before > 3.9 * LARGE
    again = where(*operands)
    assert lazily_freed() - before < LARGE and again[1] == -1


@mark.parametrize("wish", ["0", "1"])
def test_huge_pages_are_asked_for_as_numpy_does(wish):
    code = """
        import re

        def flags(array):
            place = array.ctypes.data + (4 << 20)
            maps = open("/proc/self/smaps").read()
            each = re.findall("^([0-9a-f]+)-([0-9a-f]+) .*?^VmFlags:(.*?)$", maps, re.M | re.S)
            return [of for start, end, of in each if int(start, 16) <= place < int(end, 16)]

        made, numpys = extension.empty((LARGE,), np.dtype("f4")), np.empty(LARGE, "f4")
        print(flags(made) == flags(numpys) != [])
        """
    assert python(code, NUMPY_MADVISE_HUGEPAGE=wish) == "True\n"


def test_arrays_of_any_shape_are_made():
    for shape in ((), (0,), (3, 0, 2), (1,) * 64):
        made = extension.empty(shape, FLOAT)
        assert made.shape == shape and made.dtype == FLOAT
    for shape in ((-1,), (1,) * 65, (1 << 40, 1 << 40)):
        with raises(ValueError):
            extension.empty(shape, FLOAT)
    with raises(MemoryError):
        extension.empty((1 << 50,), FLOAT)
