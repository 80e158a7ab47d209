"""The shape and the strides of a call follow from those of its operands, as in NumPy."""

import ctypes

import pytest

from tests.support import c_half
from tests.support.where_recorder import Call, axes

WIDTH = 4
REFUSED = -1


class View(ctypes.Structure):
    """A te_select_view of ``where.h``."""

    _fields_ = (
        ("ndim", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
    )


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    sanitizer = "-fsanitize=undefined", "-fno-sanitize-recover"
    folder = tmp_path_factory.mktemp("join")
    built = ctypes.CDLL(
        str(c_half.build(folder, "where_plan_test.c", ["cpu/where_call.c"], *sanitizer))
    )
    built.te_select_join.restype = ctypes.c_int64
    return built


def view(shape, ndim=None):
    """A compact operand of a shape, and of its own rank unless told."""
    rank = len(shape) if ndim is None else ndim
    numbers = ctypes.c_int64 * len(shape)
    return View(rank, numbers(*shape), None)


def joined(half, *views):
    """The elements, or `REFUSED`, and the call."""
    call = Call(-7, WIDTH, axes(*[-7] * 64))
    return half.te_select_join(ctypes.byref(call), (View * 3)(*views)), call


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
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
