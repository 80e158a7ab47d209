"""What a node's kernel asks of ONNX Runtime, written down by a stand-in for it."""

from ctypes import Structure, addressof, c_int64, c_void_p

import numpy as np
import pytest

from te_select.backends.cpu import link
from tests.support import c_half

SOURCES = tuple(name for name in link.FAMILY.sources if name != "onnxruntime/where_kernel.c")
PER_THREAD = 1 << 16  # bytes
SMALL, LARGE = 100, 1 << 17  # elements of 4 bytes


class Value(Structure):
    _fields_ = (("ndim", c_int64), ("shape", c_void_p), ("data", c_void_p))


class Node:
    """The kernel, in a process of some threads."""

    def __init__(self, library):
        self._library = library

    def number(self, name):
        return c_int64.in_dll(self._library, name).value

    def set(self, name, value):
        c_int64.in_dll(self._library, name).value = value

    def run(self, cond, x, y, out):
        """Whether the call ended without an error."""
        held = []
        values = (Value * 4).in_dll(self._library, "values")
        for number, array in enumerate((cond, x, y, out)):
            held.append((c_int64 * 64)(*array.shape))
            address = array.__array_interface__["data"][0]
            values[number] = Value(array.ndim, addressof(held[-1]), address)
        return not self._library.run_node(out.itemsize)


@pytest.fixture
def node(monkeypatch):
    def with_threads(count):
        monkeypatch.setenv("TE_SELECT_PROFILE", f"bytes_per_thread={PER_THREAD}")
        monkeypatch.setenv("TE_SELECT_NUM_THREADS", str(count))
        return Node(c_half.copied(c_half.built("ort_kernel_test.c", SOURCES, "-ldl")))

    return with_threads


def operands(size):
    rng = np.random.default_rng(size)
    return rng.random(size) < 0.5, *rng.random((3, size), np.float32)


@pytest.mark.parametrize(
    "threads, size, pieces",
    [(1, LARGE, 0), (2, LARGE, 2), (3, LARGE, 3), (4, LARGE, 4), (4, SMALL, 0)],
)
def test_large_call_has_the_threads_of_the_session(node, threads, size, pieces):
    made = node(threads)
    cond, x, y, out = operands(size)
    assert made.run(cond, x, y, out)
    assert out.tobytes() == np.where(cond, x, y).tobytes()
    assert (made.number("loops"), made.number("pieces")) == (pieces > 0, pieces)
    assert made.number("batches") == 0  # ONNX Runtime chooses


def test_work_that_the_session_leaves_is_done(node):
    made = node(4)
    cond, x, y, out = operands(LARGE)
    made.set("is_shut_down", 1)
    assert made.run(cond, x, y, out)
    assert out.tobytes() == np.where(cond, x, y).tobytes()
    assert (made.number("loops"), made.number("released")) == (1, 1)
