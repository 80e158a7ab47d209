"""Capsules that lie, and tensors that may not be written, are refused before anything is read."""

from ctypes import POINTER, c_int64, cast

import numpy as np
from pytest import importorskip, mark, raises
from tvm_ffi import from_dlpack

from te_select import ArgumentError, Workload
from tests.support import flat
from tests.support.hand_made import HandMade
from tests.support.runtime_standin import ARGS, kernel

W = flat(8)
COND, THEN, ELSE = ARGS


class Liar(HandMade):
    """A producer of a capsule with some fields changed."""

    def __init__(self, **fields):
        super().__init__(np.ones(8, "f4"))
        for name, value in fields.items():
            setattr(self.tensor, name, value)


def extents(*values):
    return cast((c_int64 * len(values))(*values), POINTER(c_int64))


LIES = {
    "more dims than there are": ({"ndim": 2**31 - 1}, "has 2147483647 dims; expected 0 to 64"),
    "64 dims": ({"ndim": 64, "shape": extents(*[1] * 64)}, r"expected \[8\]"),
    "65 dims": ({"ndim": 65}, "has 65 dims"),
    "negative dims": ({"ndim": -1}, "has -1 dims"),
    "no shape": ({"shape": POINTER(c_int64)()}, "has 1 dims and no shape"),
    "another device": ({"device_type": 2}, r"on device \(2, 0\), and __dlpack_device__ says"),
    "another number": ({"device_id": 3}, r"on device \(1, 3\)"),
    "an offset to the end": ({"byte_offset": 2**64 - 1}, "lead out of the address space"),
    "steps to the end": ({"strides": extents(2**60)}, "lead out of the address space"),
    "steps before the start": ({"strides": extents(-(2**50))}, "lead out of the address space"),
}


@mark.parametrize("lie", LIES)
@mark.parametrize("operand", ["then", "out"])
def test_capsule_that_lies_is_refused(lie, operand):
    fields, text = LIES[lie]
    given = {"cond": COND, "then": THEN, "else_": ELSE, "out": np.empty(8, "f4")}
    given[operand] = Liar(**fields)
    with raises(ArgumentError, match=text):
        kernel(W)(**given)


def test_value_needs_no_shape_in_its_capsule():
    scalar = Liar(ndim=0, shape=POINTER(c_int64)())
    assert (kernel(Workload((8,), (), (8,)))(COND, scalar, ELSE) == COND).all()


class Raw:
    """A tensor of tvm-ffi with the fields of a liar, for the exported function itself."""

    def __init__(self, **fields):
        self.liar = Liar(**fields)
        self.tensor = from_dlpack(self.liar)


@mark.parametrize(
    "fields, text",
    [
        ({"byte_offset": 2**64 - 1}, "byte_offset 18446744073709551615, which leads out"),
        ({"byte_offset": 2**64 - 16}, "leads out of the address space"),
        ({"data": 2**64 - 4}, "byte_offset 0, which leads out of the address space"),
    ],
)
@mark.parametrize("place", [0, 1, 3])
def test_exported_function_refuses_to_leave_the_address_space(fields, text, place):
    dtype = {"code": 6, "bits": 8} if place == 0 else {}
    raw = Raw(**fields, **dtype)
    arguments = [COND, THEN, ELSE, np.empty(8, "f4")]
    arguments[place] = raw.tensor
    with raises(ValueError, match=text):
        kernel(W).function(*arguments)


def test_memory_at_the_very_end_is_no_overlap():
    """If an end wrapped around to a small number, everything would seem to lie after it."""
    raw = Raw(data=2**64 - 33)
    with raises(ValueError, match="overlaps then"):
        kernel(W).function(COND, raw.tensor, ELSE, Raw(data=2**64 - 37).tensor)


@mark.parametrize("wrap", [lambda array: array, from_dlpack])
@mark.parametrize("others", ["numpy", "tvm_ffi", "jax"])
def test_jax_array_is_no_output_though_tvm_ffi_wraps_it(wrap, others):
    jnp = importorskip("jax.numpy")
    array = jnp.arange(8, dtype="float32")
    convert = {"numpy": np.asarray, "tvm_ffi": from_dlpack, "jax": jnp.asarray}[others]
    inputs = [convert(each) for each in (COND, THEN, ELSE)]
    with raises(ArgumentError, match="out is a JAX array, which is immutable"):
        kernel(W)(*inputs, out=wrap(array))
    assert array.tolist() == list(range(8))
