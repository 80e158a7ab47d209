"""The plain C functions: what they check, and what they say. Called through ctypes, as C would."""

from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL, c_void_p

import numpy as np
from pytest import fixture, mark
from tvm_ffi import libinfo

from te_select.runtime.artifact.manifest import c_name
from tests.support import alike, masked_rows, python
from tests.support.oracle.doors_of_cpu import call_plain as call
from tests.support.runtime_standin import build, manifest

OK, INVALID, CANNOT_RUN = 0, 1, 2
SAME = alike(3, 4)
NAMED = masked_rows("n", "m", "int16")


@fixture(scope="module")
def path(tmp_path_factory):
    workloads = [SAME, NAMED]
    folder = tmp_path_factory.mktemp("plain")
    return build(workloads, folder / "lib.so", described=manifest(workloads, plain=True))


@fixture(scope="module")
def library(path):
    return CDLL(str(path))


def arrays():
    cond = np.arange(12).reshape(3, 4) % 3 == 0
    then = np.arange(12, dtype="f4").reshape(3, 4)
    return cond, then, -then, np.full((3, 4), 7, "f4")


def test_null_pointers_to_no_elements_are_taken(library):
    assert call(library, NAMED, None, None, np.zeros((), "i2"), None, sizes=(4, 0))[0] == OK


@mark.parametrize(
    "sizes, message",
    [
        ((-1, 2), "the size of m is -1; expected 0 or more"),
        ((2, -(2**63)), "the size of n is -9223372036854775808; expected 0 or more"),
        ((1, 2**63 - 1), "cond has too many elements: shape [9223372036854775807,1]"),
    ],
)
def test_sizes_that_are_negative_or_too_large_are_refused(library, sizes, message):
    array = np.zeros(64, "i2")
    status, said = call(library, NAMED, array, array, array, array[32:], sizes=sizes)
    assert status == INVALID and said.startswith(message)


def test_message_is_the_threads_alone_and_outlives_a_good_call(library):
    move = CDLL(libinfo.find_libtvm_ffi()).TVMFFIErrorMoveFromRaised
    raised = (c_void_p * 1)()
    move(raised)  # what others have left
    call(library, SAME, None, None, None, None)
    move(raised)
    assert raised[0] is None
    with ThreadPoolExecutor(1) as other:
        assert other.submit(library.te_select_error).result() == b""
    assert call(library, SAME, *arrays()) == (OK, "cond has a null data pointer; expected 12 bytes")


def test_kernel_that_fails_cannot_run(tmp_path):
    made = build([SAME], tmp_path / "x.so", status=7, described=manifest([SAME], plain=True))
    opened = CDLL(str(made))
    assert call(opened, SAME, *arrays()) == (CANNOT_RUN, "the kernel failed")


def test_environment_that_is_refused_is_a_status_too(path):
    code = f"""
        import ctypes
        library = ctypes.CDLL({str(path)!r})
        library.te_select_error.restype = ctypes.c_char_p
        cond, data = ctypes.create_string_buffer(12), (ctypes.c_float * 36)()
        at = [ctypes.c_void_p(ctypes.addressof(data) + 48 * k) for k in range(3)]
        print(library[{c_name(SAME)!r}](cond, *at), library.te_select_error().decode())
    """
    said = f"1 {SAME.name}: TE_SELECT_NUM_THREADS is 'x'; expected a positive"
    assert python(code, TE_SELECT_NUM_THREADS="x").startswith(said)
