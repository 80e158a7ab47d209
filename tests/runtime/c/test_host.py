"""The exported functions as C++ programs call them: what they check, before anything is written."""

import numpy as np
import pytest
import tvm_ffi

from te_select.errors import ArgumentError
from te_select.operator.workload import Workload
from tests.support.hand_made import CUDA, HandMade, call
from tests.support.programs import python
from tests.support.runtime_standin import kernel

SAME = Workload((3, 4), (3, 4), (3, 4), "float32")
COND, THEN, ELSE = np.ones((3, 4), bool), np.ones((3, 4), "f4"), np.zeros((3, 4), "f4")


def strict(workload, *args):
    return kernel(workload).function(*args)


def tensor(array, **how):
    return tvm_ffi.from_dlpack(HandMade(array, **how))


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ((COND, THEN, ELSE), TypeError, "got 3 arguments; expected 4"),
        ((COND, THEN, ELSE, 1), TypeError, "out is not a tensor"),
        ((COND, THEN, None, THEN), TypeError, "else_ is not a tensor"),
        ((COND.view("i1"), THEN, ELSE, ELSE), TypeError, "cond has DLPack type code 0, 8 bits"),
        ((COND, THEN.view("u4"), ELSE, ELSE), TypeError, "then has DLPack type code 1, 32 bits"),
        ((COND, THEN[:2], ELSE, ELSE), ValueError, r"then has shape \[2,4\]; expected \[3,4\]"),
        ((COND, THEN, ELSE.T.copy().T, THEN), ValueError, r"else_ has strides \[1,3\] for shape"),
        ((COND, THEN.astype("f8"), ELSE, ELSE), TypeError, "then has DLPack type code 2, 64 bits"),
        ((COND, THEN, ELSE, THEN[:, :3]), ValueError, r"out has shape \[3,3\]; expected \[3,4\]"),
        ((COND, THEN[:, :3], ELSE, ELSE), ValueError, r"then has shape \[3,3\]; expected \[3,4\]"),
        ((COND, THEN, ELSE, THEN[0]), ValueError, r"out has shape \[4\]; expected \[3,4\]"),
    ],
)
def test_arguments_are_checked(args, error, text):
    with pytest.raises(error, match=text):
        strict(SAME, *args)


@pytest.mark.parametrize("which", range(4))
def test_two_lanes_are_refused(which):
    """Elements have 16 bits each, so that only the number of lanes is wrong."""
    arrays = [COND.copy(), THEN.astype("f2"), ELSE.astype("f2"), np.full((3, 4), 7, "f2")]
    code, bits, _ = (6, 8, 1) if not which else (2, 16, 1)
    k = kernel(Workload((3, 4), (3, 4), (3, 4), "float16"))
    for function in (k.function, k._bits):
        args = [tensor(array) for array in arrays]
        args[which] = tensor(arrays[which], dtype=(code, bits, 2))
        with pytest.raises(TypeError, match="2 lanes; expected"):
            function(*args)
    assert (arrays[3] == 7).all()


def test_unit_axes_may_have_any_stride():
    workload = Workload((1, 4), (1, 4), (1, 4), "float32")
    big = np.arange(40, dtype="f4").reshape(10, 4)
    out = np.zeros((1, 4), "f4")
    then = tensor(big, shape=(1, 4), strides=(8, 1))  # as of big[::2][:1]
    strict(workload, np.array([[True, False, True, False]]), then, -np.ones((1, 4), "f4"), out)
    assert out.tolist() == [[0, -1, 2, -1]]


@pytest.mark.parametrize("place", ["then", "else_"])
def test_out_directly_behind_or_before_an_input_is_no_overlap(place):
    workload = Workload((8,), (8,), (8,), "uint8")
    cond, other = np.array([1, 0] * 4, bool), np.full(8, 5, "u1")
    for first, second in ((0, 8), (8, 0)):
        memory = np.arange(16, dtype="u1")
        given, out = memory[first : first + 8], memory[second : second + 8]
        sides = (given, other) if place == "then" else (other, given)
        want = np.where(cond, *(side.copy() for side in sides))
        strict(workload, cond, *sides, out)
        assert (out == want).all()
    memory = np.zeros(16, "u1")
    memory[:8] = cond
    strict(workload, memory[:8].view(bool), other, other, memory[8:])
    assert memory.tolist() == [*cond, *[5] * 8]


def test_overlap_in_part_is_refused():
    w = Workload((8,), (8,), (8,), "uint8")
    memory = np.zeros(9, "u1")
    cond, other = np.ones(8, bool), np.ones(8, "u1")
    with pytest.raises(ValueError, match="out overlaps then; expected memory of its own"):
        strict(w, cond, memory[:8], other, memory[1:])
    with pytest.raises(ValueError, match="out overlaps else_; expected memory of its own"):
        strict(w, cond, other, memory[1:], memory[:8])
    with pytest.raises(ValueError, match="out overlaps cond; expected memory of its own"):
        strict(w, memory[:8].view(bool), other, other, memory[:8])
    assert not memory.any()
    strict(w, cond, other, memory[:8], memory[:8])
    assert memory.tolist() == [1] * 8 + [0]


def test_input_that_is_the_first_row_of_out_is_refused():
    w = Workload((4, 4), (4,), (4, 4), "int32")
    out = np.zeros((4, 4), "i4")
    with pytest.raises(ValueError, match="out overlaps then"):
        strict(w, np.ones((4, 4), bool), out[0], out.copy(), out)


def test_named_dims_are_compared():
    w = Workload(("n",), ("n",), ("n",), "float32")
    three, four = np.ones(3, "f4"), np.ones(4, "f4")
    with pytest.raises(ValueError, match=r"then has shape \[4\]; expected \[n\] with n = 3"):
        strict(w, np.ones(3, bool), four, three, three)
    with pytest.raises(ValueError, match=r"out has shape \[4\]; expected \[n\] with n = 3"):
        strict(w, np.ones(3, bool), three, three, four)


def test_bits_function_takes_any_type_of_the_width():
    k = kernel(Workload((2,), (2,), (2,), "complex128"))
    cond = np.array([1, 0], "i1")
    then, else_ = np.array([1, 2], complex), np.array([3, 4], complex)
    for kind in (complex, np.int64):
        views = [x.view(kind).reshape(2, -1) if kind is np.int64 else x for x in (then, else_)]
        out = np.zeros(2, complex)
        k._bits(cond, *views, out.view(kind).reshape(2, -1) if kind is np.int64 else out)
        assert out.tolist() == [1, 4]
    with pytest.raises(TypeError, match="then has DLPack type code 2, 32 bits"):
        k._bits(cond, then.view("f4"), else_, else_)
    with pytest.raises(ValueError, match=r"then has shape \[2,3\]; expected \[2\] and a last axis"):
        k._bits(cond, np.zeros((2, 3), "i8"), else_, else_)


def test_byte_offset_null_strides_and_null_data():
    out = np.zeros((3, 4), "f4")
    kernel(SAME)(COND, HandMade(THEN, offset=16), HandMade(ELSE), out=out)
    assert (out == 1).all()
    strict(SAME, *(tensor(x, offset=8) for x in (COND, ELSE, THEN, out)))
    assert (out == 0).all()
    with pytest.raises(ArgumentError, match="then has no memory"):
        kernel(SAME)(COND, HandMade(THEN, data=0), ELSE)
    with pytest.raises(ValueError, match="then has a null data pointer; expected 48 bytes"):
        strict(SAME, COND, tensor(THEN, data=0), ELSE, out)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((2**40, 2**40), "cond has too many elements"),
        ((2**29, 2**29), "cond has too many elements"),
        ((2**57, 1), "cond has too many elements"),
        ((2**57 - 1, 1), f"cond has a null data pointer; expected {2**57 - 1} bytes"),
    ],
)
def test_sizes_of_2_to_the_57_and_more_are_refused(shape, text):
    w = Workload(("a", "b"), ("a", "b"), ("a", "b"), "float32")
    huge = [tensor(x, shape=shape, data=0) for x in (COND, THEN, ELSE, ELSE)]
    with pytest.raises(ValueError, match=text):
        strict(w, *huge)


@pytest.mark.parametrize("extent", [-1, -(2**63)])
def test_negative_extents_are_refused(extent):
    w = Workload(("n",), ("n",), ("n",), "float32")
    tensors = [tensor(x, shape=(extent,)) for x in (COND, THEN, ELSE, ELSE)]
    with pytest.raises(ValueError, match=rf"cond has shape \[{extent}\]; expected \[n\]"):
        strict(w, *tensors)


def test_memory_of_another_device_is_refused():
    with pytest.raises(ValueError, match=r"cond is on DLPack device \(2,0\); .*memory of the CPU"):
        strict(SAME, tensor(COND, device=CUDA), THEN, ELSE, ELSE)


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
    assert start.startswith(f"{Workload((3,), (3,), (3,)).name}: then has shape [{2**62},")
