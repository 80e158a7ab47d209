"""The exported functions as C++ programs call them: what they check, before anything is written."""

import numpy as np
import tvm_ffi
from pytest import mark, raises

from tests.support import alike, flat, python
from tests.support.hand_made import CPU, HandMade, call
from tests.support.runtime_standin import kernel

SAME = alike(3, 4)
COND = np.ones((3, 4), bool)
THEN = np.ones((3, 4), "f4")
ELSE = np.zeros((3, 4), "f4")


def test_fewer_arguments_are_refused():
    with raises(TypeError, match="got 3 arguments; expected 4"):
        strict(SAME, COND, THEN, ELSE)


def strict(workload, *args):
    return kernel(workload).function(*args)


def tensor(array, **how):
    return tvm_ffi.from_dlpack(HandMade(array, **how))


def test_bits_function_takes_any_type_of_the_width():
    k = kernel(flat(2, "complex128"))
    cond = np.array([1, 0], "i1")
    then, else_ = np.array([1, 2], complex), np.array([3, 4], complex)
    for kind in (complex, np.int64):
        views = [x.view(kind).reshape(2, -1) if kind is np.int64 else x for x in (then, else_)]
        out = np.zeros(2, complex)
        k._bits(cond, *views, out.view(kind).reshape(2, -1) if kind is np.int64 else out)
        assert out.tolist() == [1, 4]
    with raises(TypeError, match="then has DLPack type code 2, 32 bits"):
        k._bits(cond, then.view("f4"), else_, else_)
    with raises(ValueError, match=r"then has shape \[2,3\]; expected \[2\] and a last axis"):
        k._bits(cond, np.zeros((2, 3), "i8"), else_, else_)


def test_byte_offset_is_added_to_the_address_also_if_pinned():
    out = np.zeros((3, 4), "f4")
    kernel(SAME)(COND, HandMade(THEN, offset=16), HandMade(ELSE), out=out)
    assert (out == 1).all()
    pinned = zip((COND, ELSE, THEN, out), (CPU, 3, 11, 3), strict=True)
    strict(SAME, *(tensor(x, offset=8, device=kind) for x, kind in pinned))
    assert (out == 0).all()


def test_out_may_be_a_side_but_not_cond():
    workload = flat(3, "bool")
    cond, then, else_ = np.eye(3, dtype=bool)
    strict(workload, cond, then, else_, else_)
    assert else_.tolist() == [False, False, True]
    with raises(ValueError, match="out overlaps cond; expected memory of its own"):
        strict(workload, cond, then, else_, cond)


@mark.parametrize(
    "shape, text",
    [
        ((2**40, 2**40), "cond has too many elements"),
        ((2**57, 1), "cond has too many elements"),
        ((2**57 - 1, 1), f"cond has a null data pointer; expected {2**57 - 1} bytes"),
    ],
)
def test_sizes_of_2_to_the_57_and_more_are_refused(shape, text):
    w = alike("a", "b")
    huge = [tensor(x, shape=shape, data=0) for x in (COND, THEN, ELSE, ELSE)]
    with raises(ValueError, match=text):
        strict(w, *huge)


def test_tensor_without_a_shape_is_refused():
    held = [HandMade(x) for x in (COND, THEN, ELSE, ELSE.copy())]
    assert call(kernel(SAME), *held) == 0
    then = held[1].tensor
    then.ndim = 1000  # only 64 of them are read for the message, from a shape of that many
    then.shape = HandMade(THEN, shape=(0,) * 64).tensor.shape
    assert call(kernel(SAME), *held) == -1
    then.shape = None
    for ndim in (1, 2, 1000):
        then.ndim = ndim
        assert call(kernel(SAME), *held) == -1


def test_message_is_cut_where_its_room_ends():
    """In a process of its own: a message that ran on would write over the stack."""
    code = """
        import numpy as np, tvm_ffi
        from te_select import Workload
        from tests.support.hand_made import HandMade
        from tests.support.runtime_standin import kernel
        k = kernel(Workload((3,), (3,), (3,)))
        huge = tvm_ffi.from_dlpack(HandMade(np.zeros(3, "f4"), shape=(2**62,) * 64))
        three = np.zeros(3, "f4")
        try:
            k.function(np.ones(3, bool), huge, three, three)
        except ValueError as error:
            print(len(str(error)), str(error)[:70])
    """
    length, _, start = python(code).strip().partition(" ")
    assert int(length) == 1023
    assert start.startswith(f"{flat(3).name}: then has shape [{2**62},")
