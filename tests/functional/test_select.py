import numpy as np
import pytest

from te_select import BroadcastError, DTypeError
from te_select.functional.select import select
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support.strategies import numpy_dtype


def random_bits(shape, dtype, seed):
    rng = np.random.default_rng(seed)
    carrier = numpy_dtype(dtype)
    count = int(np.prod(shape, dtype=int)) * carrier.itemsize
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return rng.integers(0, 256, count, np.uint8).view(carrier).reshape(shape)


@pytest.mark.parametrize("dtype", ELEMENT_TYPES)
def test_every_element_type_keeps_its_bits(dtype):
    cond = random_bits((4, 1), "bool", 1)
    then, else_ = random_bits((4, 7), dtype, 2), random_bits((7,), dtype, 3)
    out = select(cond, then, else_)
    want = np.where(cond, then, else_)
    assert (out.dtype, out.shape) == (then.dtype, want.shape)
    assert out.tobytes() == want.astype(then.dtype).tobytes()


@pytest.mark.parametrize(
    ("cond", "then", "else_"),
    [
        ((), (), ()),
        ((3, 4), (3, 4), (3, 4)),
        ((3, 1), (4,), (1, 1)),
        ((4,), (3, 1), ()),
        ((1, 5), (2, 1, 1), (3, 1)),
        ((0, 4), (1, 4), ()),
        ((1,), (0,), (1, 1, 1)),
    ],
)
def test_shapes_broadcast_as_in_numpy(cond, then, else_):
    cond = random_bits(cond, "bool", 1)
    then, else_ = random_bits(then, "int32", 2), random_bits(else_, "int32", 3)
    out = select(cond, then, else_)
    want = np.where(cond, then, else_)
    assert out.shape == want.shape
    np.testing.assert_array_equal(out, want)


def test_operands_may_be_strided():
    cond = random_bits((6, 4), "bool", 1)[::2, ::-1]
    then = random_bits((4, 3), "float32", 2).T
    out = select(cond, then, np.float32(0.0).reshape(()))
    assert out.tobytes() == np.where(cond, then, np.float32(0.0)).tobytes()


def test_operands_that_do_not_fit_are_refused():
    one, two = np.zeros(3, np.float32), np.zeros(4, np.float32)
    mask = np.zeros(3, bool)
    with pytest.raises(BroadcastError):
        select(mask, one, two)
    with pytest.raises(DTypeError, match="expected bool"):
        select(mask.view(np.uint8), one, one)
    with pytest.raises(DTypeError, match="expected one type"):
        select(mask, one, one.astype(np.float64))
    with pytest.raises(DTypeError):
        select(mask, one.astype("M8[s]"), one.astype("M8[s]"))
