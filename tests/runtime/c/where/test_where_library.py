"""The exported functions of a library of where(), called through tvm-ffi."""

from concurrent.futures import ThreadPoolExecutor
from ctypes import CFUNCTYPE, byref, c_size_t, c_void_p

import numpy as np
import tvm_ffi
from pytest import fixture, mark, raises

from te_select.backends.cpu import link
from tests.support import ROOT, c_half, python
from tests.support.where_recorder import Call, axes, call_of, operands


def test_call_that_was_not_done_is_an_error():
    """A C++ program may not look at the result of a call."""
    path = c_half.built("where_in_c.c", link.FAMILY.sources, "-ldl", "-DFAILS=1")
    where = tvm_ffi.load_module(str(path)).get_function("te_select_where")
    x = np.ones(9, "f4")
    with raises(RuntimeError, match="there is no memory for tiles of out, or a kernel fail"):
        where(x > 0, x, x, np.empty(9, "f4"))


# ---- te_select_where_call_on --------------------------------------------------------------------

PIECE = CFUNCTYPE(None, c_void_p, c_size_t)
PARALLEL_FOR = CFUNCTYPE(None, c_void_p, PIECE, c_size_t, c_void_p)
UNSOUND = -4


@fixture
def path():
    return c_half.built("where_in_c.c", link.FAMILY.sources, "-ldl", *c_half.SANITIZED)


@fixture
def library(path):
    return c_half.load(path)


NOTHING = """
    import ctypes, sys
    import numpy as np
    from tests.support.hand_made import HandMade, call_function

    where = ctypes.CDLL(sys.argv[1])["__tvm_ffi_te_select_where"]
    for shape, offset, kind in (((), 0, 1), ((3, 0), 0, 3), ((3, 0), 8, 11)):  # or pinned
        arrays = [np.zeros(shape, dtype) for dtype in "?ddd"]
        strides = (-1, 1)[: len(shape)]
        operands = [HandMade(each, offset=offset, strides=strides, device=kind) for each in arrays]
        for each in operands:
            if shape:
                each.tensor.data = None
            else:
                each.tensor.shape = each.tensor.strides = None
        print(call_function(where, *operands))
"""


def test_null_pointers_are_not_stepped_from(path):
    """In a process of its own, which the sanitizer would end."""
    assert python(NOTHING, path, cwd=ROOT).split() == ["0"] * 3


OF_VERSION_5 = """
    import ctypes, sys, tvm_ffi
    half = tvm_ffi.load_module(sys.argv[1])
    ours = (ctypes.c_void_p * 9).from_address(half.get_function("te_select_where_library")())
    kernels = ctypes.create_string_buffer(1 << 16)
    older = (ctypes.c_void_p * 9)(5, 0, 0, 0, 0, ctypes.addressof(kernels), 0, 8)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(ours[4])(ctypes.addressof(older))
"""


def test_stages_of_an_older_library_are_not_read(path):
    python(OF_VERSION_5, path)


def test_call_is_done_on_the_threads_of_a_pool(library):
    cond, x, y = operands(1 << 20)
    out = np.empty_like(x)
    counts = []

    @PARALLEL_FOR
    def parallel_for(pool, piece, count, data):
        counts.append((pool, count))
        with ThreadPoolExecutor(count) as executor:
            list(executor.map(lambda i: piece(data, i), range(count)))

    call = call_of(cond, x, y, out)
    assert library.te_select_where_call_on(byref(call), parallel_for, 7, 3) >= 0
    assert out.tobytes() == np.where(cond, x, y).tobytes()
    assert counts == [(7, 3)]


def _set(field, value):
    return lambda call: setattr(call, field, value)


def _set_at(field, index, value):
    return lambda call: getattr(call, field).__setitem__(index, value)


@mark.parametrize(
    "change",
    [
        _set("ndim", -1),
        _set("ndim", 65),
        _set("width", 0),
        _set("width", -4),
        _set_at("shape", 0, -3),
        _set_at("shape", 0, 1 << 62),
        _set_at("data", 1, None),
        _set_at("data", 3, None),
        lambda call: call.strides[2].__setitem__(0, 1 << 62),
    ],
)
def test_call_that_makes_no_sense_is_refused(library, change):
    cond, x, y = operands(3)
    out = np.full(3, 7, "f4")
    call = call_of(cond, x, y, out)
    change(call)
    assert library.te_select_where_call_on(byref(call), None, None, 0) == UNSOUND
    assert (out == 7).all()


def test_stride_of_an_axis_of_one_element_does_not_matter(library):
    cond, x, y = operands(3)
    out = np.empty((1, 3), "f4")
    call = call_of(cond, x, y, out)
    for operand, stride in enumerate((1 << 62, -(1 << 63), (1 << 63) - 1, -(1 << 63))):
        call.strides[operand][0] = stride
    assert library.te_select_where_call_on(byref(call), None, None, 0) >= 0
    assert out.tobytes() == np.where(cond, x, y).tobytes()


def test_call_without_elements_needs_no_memory(library):
    nothing = np.empty((3, 0), "f4")
    call = call_of(nothing > 0, nothing, nothing, nothing)
    for operand in range(4):
        call.data[operand] = None
    assert library.te_select_where_call_on(byref(call), None, None, 0) >= 0


def test_operand_without_strides_is_compact(library):
    call = Call(3, 4, axes(2, 3, 5))
    broadcast = library.te_select_broadcast
    assert broadcast(byref(call), 1, 3, axes(2, 3, 5), None) == 1
    assert call.strides[1][:3] == [60, 20, 4]
    assert broadcast(byref(call), 0, 2, axes(3, 1), None) == 1
    assert call.strides[0][:3] == [0, 1, 0]
    assert broadcast(byref(call), 2, 1, axes(4), None) == 0


@mark.parametrize(
    "rank, operand, ndim",
    [(1, 0, -100_000), (1, 0, -1), (100_000, 0, 1), (65, 0, 65), (-1, 0, 0), (1, 4, 1), (1, -1, 1)],
)
def test_operand_or_rank_that_there_is_not_is_refused(library, rank, operand, ndim):
    call = Call(rank, 4, axes(1))
    before = bytes(call)
    shape = axes(1)
    assert library.te_select_broadcast(byref(call), operand, ndim, shape, None) == 0
    assert bytes(call) == before
