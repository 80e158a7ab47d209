"""The shape and the strides of a call follow from those of its operands, as in NumPy."""

from ctypes import POINTER, Structure, byref, c_int32, c_int64, c_void_p

from pytest import fixture, mark

from tests.support import c_half
from tests.support.where_recorder import Call, axes

WIDTH = 4
REFUSED = -1


class View(Structure):
    """A te_select_view of ``where_abi.h``."""

    _fields_ = (
        ("ndim", c_int32),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
    )


@fixture
def half():
    path = c_half.built("where_plan_test.c", ("where/where_call.c",), *c_half.SANITIZED)
    return c_half.load(path, te_select_join=">q")


class Sources(Structure):
    """A te_select_where_sources of ``where_abi.h``."""

    _fields_ = (
        ("kinds", c_int32 * 3),
        ("out_kind", c_int32),
        ("flags", c_int32),
        ("bits", c_void_p),
    )


def view(shape, ndim=None):
    """A compact operand of a shape, and of its own rank unless told."""
    rank = len(shape) if ndim is None else ndim
    numbers = c_int64 * len(shape)
    return View(rank, numbers(*shape), None)


def joined(half, *views):
    """The elements, or `REFUSED`, and the call."""
    call = Call(-7, WIDTH, axes(*[-7] * 64))
    return half.te_select_join(byref(call), (View * 3)(*views)), call


@mark.parametrize("place", range(3))
@mark.parametrize(
    "odd",
    [
        view((3,)),
        view((2, -1, 2)),
        view((2,), ndim=-(2**31)),
        view((2,) * 65),
        view((2,), ndim=2**31 - 1),
        view((2**32, 2**31, 2)),
        view((2**62, 1)),
    ],
)
def test_what_does_not_join_is_refused(half, place, odd):
    views = [view((2,)), view((1, 2)), view(())]
    views[place] = odd
    assert joined(half, *views)[0] == REFUSED


def test_operands_of_64_axes_are_joined(half):
    elements, call = joined(half, view((1,) * 63 + (9,)), view((2,) + (1,) * 63), view(()))
    assert (elements, call.ndim) == (18, 64)
    assert list(call.shape) == [2] + [1] * 62 + [9]


AS_IS, INT64, BITS = -1, 4, 14
OUT, N, FAR = 1 << 20, 10, 1 << 30  # the address of out, its elements, and where nothing is


def overlaps(half, operand, address, step, kind, bits=None):
    """Whether out overlaps an operand."""
    call = Call(1, WIDTH, axes(N), data=(FAR, FAR, FAR, OUT))
    call.strides[3][0] = WIDTH
    call.data[operand] = address
    call.strides[operand][0] = step
    sources = Sources((AS_IS,) * 3, 0, 0, bits)
    sources.kinds[operand] = kind
    return half.te_select_where_overlaps(byref(call), byref(sources))


@mark.parametrize(
    "operand, kind, item",
    [(0, AS_IS, 1), (1, AS_IS, WIDTH), (2, AS_IS, WIDTH), (2, INT64, 8), (0, INT64, 8)],
)
def test_memory_that_touches_out_does_not_overlap_it(half, operand, kind, item):
    before = OUT - N * item
    end = OUT + N * WIDTH
    for step, first in ((item, 0), (-item, (N - 1) * item)):
        places = (before, before + 1, end - 1, end)
        found = [overlaps(half, operand, first + at, step, kind) for at in places]
        assert found == [0, 1, 1, 0]


def test_bits_that_touch_out_do_not_overlap_it(half):
    """Ten bits, from these on."""
    found = [overlaps(half, 0, bit, 1, BITS, OUT - 2) for bit in (6, 7, 335, 336)]
    assert found == [0, 1, 1, 0]


@mark.parametrize("kind, row, found", [(3, 80, 0), (3, 88, 1), (INT64, 80, 1)])
def test_converted_side_of_rows_is_out_only_if_as_wide(half, kind, row, found):
    call = Call(2, WIDTH, axes(3, 5), data=(FAR, OUT, FAR, OUT))
    for number, step in ((1, row), (3, 80)):
        call.strides[number][:2] = (step, 8)
    sources = Sources((AS_IS, kind, AS_IS), 0, 0, None)
    assert half.te_select_where_overlaps(byref(call), byref(sources)) == found
