"""Kernels called by NumPy's C API: what they take, and what goes another way."""

from sys import getrefcount

import numpy as np
import tvm_ffi
from pytest import fixture, mark, raises

from te_select import ArgumentError, Workload
from tests.support import flat, flat_and_scalar, masked_rows
from tests.support.runtime_standin import kernel


@fixture
def operands():
    cond = np.array([[True], [False], [True], [False]])
    return cond, np.arange(20, dtype="f4").reshape(4, 5), np.empty((4, 5), "f4")


@mark.parametrize("writable", [True, False])
def test_strides_that_are_no_multiple_of_the_element(writable):
    record = np.zeros(5, [("pad", "u1"), ("then", "f4")])
    record["then"] = np.arange(5)
    record.flags.writeable = writable
    out = kernel(flat(5))(np.ones(5, bool), record["then"], np.zeros(5, "f4"))
    assert out.tolist() == [0, 1, 2, 3, 4]


@mark.parametrize("dtype", ["bool", "uint16", "float16", "complex128"])
def test_scalars_of_numpy_are_taken_if_of_the_very_type(dtype):
    k = kernel(flat_and_scalar(3, dtype))
    cond, then, out = np.zeros(3, bool), np.zeros(3, dtype), np.zeros(3, dtype)
    scalar = np.ones(1, dtype)[0]
    assert k._entry(cond, then, scalar, out) is True
    assert out.tobytes() == scalar.tobytes() * 3
    for other in (np.float32(1), np.int16(1), np.datetime64("NaT"), np.str_(1)):
        assert k._entry(cond, then, other, out) is False


def test_scalar_of_numpy_may_be_cond(operands):
    k = kernel(Workload((), (4, 5), (4, 5)))
    _, then, out = operands
    for cond in (np.True_, np.False_):
        assert k._entry(cond, then, then + 1, out) is True
        assert out.tobytes() == np.where(cond, then, then + 1).tobytes()
    assert k._entry(np.int8(1), then, then, out) is False


ONE = np.ones((), "f4")


@mark.parametrize(
    "cond, then",
    [(np.True_, 1.0), (True, np.float32(1)), (np.int8(1), 1.0), (np.array(True), ONE)],
)
def test_call_keeps_no_reference(cond, then):
    k = kernel(Workload((), (), (4, 5)))
    else_, out = np.ones((4, 5), "f4"), np.ones((4, 5), "f4")
    if then is ONE:
        cond, then, else_, out = _tensors(cond, then, else_, out)
    things = (*map(np.dtype, ("?", "i1", "f4")), cond, then, else_, out, None, True, False)
    before = [getrefcount(thing) for thing in things]
    for _ in range(1000):
        k._entry(cond, then, else_, out)
    after = [getrefcount(thing) for thing in things]
    assert np.abs(np.subtract(after, before)).max() < 200


def _tensors(*arrays):
    return [tvm_ffi.from_dlpack(array) for array in arrays]


@mark.parametrize("rows", [4, 40_000])  # the larger call gives the interpreter's lock away
def test_tensors_of_tvm_ffi_are_taken(rows):
    k = kernel(masked_rows(rows, 5))
    cond = np.arange(rows)[:, None] % 3 == 0
    then = np.arange(rows * 5, dtype="f4").reshape(rows, 5)
    out = np.empty((rows, 5), "f4")
    else_ = np.array(-0.0, "f4")
    assert k._entry(*_tensors(cond, then, else_, out)) is True
    assert out.tobytes() == np.where(cond, then, else_).tobytes()


class _Own(tvm_ffi.Tensor):
    __slots__ = ()

    def __chandle__(self):
        raise AssertionError("the extension calls the method of tvm-ffi's own class")


def test_tensors_that_do_not_fit_go_another_way(operands):
    masked = kernel(masked_rows(4, 5))
    cond, then, out = operands
    number = np.array(1, "f4")
    fit = _tensors(cond, then, number, out)
    out[...] = 7
    wrong = _tensors(cond[:3], then.astype("f8"), np.array(1, "i4"), np.empty((5, 4), "f4"))
    others = [cond, then, 1.0, out]
    empty = [tvm_ffi.Tensor.__new__(tvm_ffi.Tensor)] * 4
    own = [_Own.__new__(_Own)] * 4
    for place in range(4):
        for stranger in (wrong, others, empty, own):
            args = [*fit[:place], stranger[place], *fit[place + 1 :]]
            assert masked._entry(*args) is False
    assert (out == 7).all()
    for place, name in enumerate(("cond", "then", "else_", "out")):
        with raises(ArgumentError, match=f"{name} is a tensor of tvm-ffi without memory"):
            masked(*fit[:place], empty[place], *fit[place + 1 :])
