"""Calls that are refused: an error of ours, and nothing written."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
import tvm_ffi

from te_select.errors import ArgumentError, DTypeError
from te_select.operator.workload import Workload
from tests.support.runtime_standin import kernel

SAME = Workload((3, 4), (3, 4), (3, 4), "float32")
COND, THEN, ELSE = np.ones((3, 4), bool), np.ones((3, 4), "f4"), np.zeros((3, 4), "f4")


class _OnCuda:
    def __dlpack_device__(self):
        return (2, 0)

    def __dlpack__(self, **_kwargs):
        raise AssertionError("must not be asked")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {"then": np.ones((3, 5), "f4")},
            ArgumentError,
            r"then has shape \[3,5\]; expected \[3,4\]",
        ),
        ({"then": np.ones(12, "f4")}, ArgumentError, r"then has shape \[12\]"),
        ({"cond": np.ones((1, 4), bool)}, ArgumentError, r"cond has shape \[1,4\]"),
        ({"cond": COND.view("u1")}, DTypeError, "cond has element type uint8.*pass cond != 0"),
        ({"then": np.ones((3, 4))}, DTypeError, "then has element type float64; expected float32"),
        ({"else_": ELSE.astype(">f4")}, DTypeError, "else_ has element type >f4 in foreign byte"),
        ({"then": THEN.astype(object)}, DTypeError, "then has element type object"),
        ({"then": THEN.astype("U3")}, DTypeError, "then has element type <U3"),
        ({"then": None}, ArgumentError, "then is None; expected a NumPy array"),
        ({"then": [[1.0]]}, ArgumentError, "then is a list; expected a NumPy array"),
        ({"then": "x"}, ArgumentError, "then is a str"),
        ({"then": 1.0}, ArgumentError, r"then is the scalar 1.0.*of shape \[3,4\]"),
        ({"then": np.float32(1)}, ArgumentError, r"then has shape \[\]"),
        ({"then": _OnCuda()}, ArgumentError, "then is on device 0 of CUDA; expected memory of the"),
        ({"out": np.zeros((3, 5), "f4")}, ArgumentError, r"out has shape \[3,5\]"),
        ({"out": np.zeros((3, 4))}, DTypeError, "out has element type float64"),
        ({"out": np.zeros((3, 4), ">f4")}, DTypeError, "out has element type >f4"),
        ({"out": [0]}, ArgumentError, "out is a list"),
        ({"out": 1.0}, ArgumentError, "out is the scalar 1.0"),
        ({"out": _OnCuda()}, ArgumentError, "out is on device 0 of CUDA"),
    ],
)
def test_wrong_operand_is_named(change, error, text):
    args = {"cond": COND, "then": THEN, "else_": ELSE, "out": np.full((3, 4), 7, "f4")} | change
    out = args["out"]
    before = out.tobytes() if isinstance(out, np.ndarray) else None
    with pytest.raises(error, match=text):
        kernel(SAME)(**args)
    if before is not None:
        assert out.tobytes() == before


def test_read_only_and_broadcast_out_are_refused():
    out = np.zeros((3, 4), "f4")
    out.flags.writeable = False
    with pytest.raises(ArgumentError, match="out is a ndarray that cannot be written"):
        kernel(SAME)(COND, THEN, ELSE, out=out)
    shared = np.lib.stride_tricks.as_strided(np.zeros(4, "f4"), (3, 4), (0, 4))
    with pytest.raises(ArgumentError, match="its elements share memory"):
        kernel(SAME)(COND, THEN, ELSE, out=shared)
    assert not out.any()
    assert not shared.any()


@pytest.mark.parametrize(
    ("strides", "shared"),
    [((4, 4), True), ((8, 4), True), ((-4, 8), True), ((16, 4), False), ((-4, 12), False)],
)
def test_out_whose_elements_overlap_is_refused(strides, shared):
    memory = np.zeros(64, "f4")
    out = np.lib.stride_tricks.as_strided(memory[20:], (3, 4), strides)
    if shared:
        with pytest.raises(ArgumentError, match="its elements share memory"):
            kernel(SAME)(COND, THEN, ELSE, out=out)
        assert not memory.any()
    else:
        assert (kernel(SAME)(COND, THEN, ELSE, out=out) == 1).all()


def test_torch_out_whose_elements_overlap_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(ArgumentError, match="its elements share memory"):
        kernel(SAME)(COND, THEN, ELSE, out=torch.zeros(6).unfold(0, 4, 1))


def test_jax_that_would_narrow_the_result_is_refused():
    jax = pytest.importorskip("jax")
    k = kernel(Workload((), (3,), (3,), "int64"))
    then = np.full(3, 2**40)
    jax.config.update("jax_enable_x64", True)
    try:
        wide = jax.numpy.asarray(then)
        assert k(True, wide, wide).tolist() == then.tolist()
    finally:
        jax.config.update("jax_enable_x64", False)
    with pytest.raises(DTypeError, match=r"enable jax_enable_x64.* or pass a NumPy out"):
        k(True, wide, wide)
    assert k(True, wide, wide, out=np.zeros(3, "i8")).tolist() == then.tolist()


def test_sizes_beyond_memory_are_refused():
    k = kernel(Workload((1, 1), ("a", 1), (1, "b"), "float64", "multidirectional"))
    far = np.lib.stride_tricks.as_strided(np.zeros(1), (2**28, 1), (0, 0))
    with pytest.raises(ArgumentError, match=r"the operands cannot be used: .*MemoryError"):
        k(np.ones((1, 1), bool), far, far.T)


def test_jax_array_is_refused_as_out():
    jnp = pytest.importorskip("jax.numpy")
    out = jnp.zeros((3, 4))
    with pytest.raises(ArgumentError, match="JAX array, which is immutable"):
        kernel(SAME)(COND, THEN, ELSE, out=out)
    with pytest.raises(ArgumentError, match="JAX array, which is immutable"):
        kernel(SAME)(*(jnp.asarray(x) for x in (COND, THEN, ELSE)), out=out)
    assert not out.any()


def test_jax_tracer_is_refused():
    jax = pytest.importorskip("jax")
    with pytest.raises(ArgumentError, match=r"then is a .*Tracer"):
        jax.jit(lambda x: kernel(SAME)(COND, x, ELSE))(THEN)


def test_torch_tensors_that_are_refused():
    torch = pytest.importorskip("torch")
    cond, then, else_ = (torch.from_numpy(x) for x in (COND, THEN, ELSE))
    out = torch.zeros(3, 4, requires_grad=True)
    k = kernel(SAME)
    with pytest.raises(ArgumentError, match="out is a Tensor that cannot be written"):
        k(cond, then, else_, out=out)
    with pytest.raises(DTypeError, match="cond has element type uint8"):
        k(cond.to(torch.uint8), then, else_)
    with pytest.raises(ArgumentError, match="on meta"):
        k(cond, then.to("meta"), else_)
    with pytest.raises(ArgumentError, match=r"else_ is a torch\.sparse_coo tensor"):
        k(cond, then, else_.to_sparse())
    with pytest.raises(ArgumentError, match="then is a torch tensor without memory"):
        torch.vmap(lambda x: k(cond, x, else_))(torch.ones(2, 3, 4))


@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        ("int8", 128, ArgumentError),
        ("uint8", -1, ArgumentError),
        ("int8", 1.0, DTypeError),
        ("int8", True, DTypeError),
        ("bool", 1, DTypeError),
        ("float16", 1e6, ArgumentError),
        ("float32", 10**400, ArgumentError),
        ("float32", 1j, DTypeError),
        ("float32", np.float64(1), DTypeError),
        ("float8_e4m3fn", float("inf"), ArgumentError),
        ("complex64", 1e300j, ArgumentError),
        ("complex64", complex(float("inf"), 1e300), ArgumentError),
        ("bfloat16", 10**400, ArgumentError),
        ("float8_e4m3fn", 10**20, ArgumentError),
    ],
)
def test_scalar_of_the_wrong_kind_or_range(dtype, value, error):
    k = kernel(Workload((), (), (), dtype))
    with pytest.raises(error, match=r"^then "):
        k(True, value, value)


@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "bfloat16"])
def test_int_too_long_to_print_is_refused(dtype):
    k = kernel(Workload((), (), (), dtype))
    with pytest.raises((ArgumentError, DTypeError), match=r"then is .*an int of 16610 bits"):
        k(True, 10**5000, 1)


def test_cond_scalar_is_a_bool():
    with pytest.raises(DTypeError, match="cond is the int 1; expected bool: pass cond != 0"):
        kernel(Workload((), (), (), "float32"))(1, 1.0, 2.0)


def test_equal_names_with_unequal_sizes():
    k = kernel(Workload(("n",), ("n",), ("n", "n"), "float32", "multidirectional"))
    out = np.full((3, 3), 7, "f4")
    with pytest.raises(ArgumentError, match=r"then has shape \[4\]; expected \[n\] with n = 3"):
        k(np.ones(3, bool), np.ones(4, "f4"), np.ones((3, 3), "f4"), out=out)
    with pytest.raises(
        ArgumentError, match=r"else_ has shape \[3,4\]; expected \[n,n\] with n = 3"
    ):
        k(np.ones(3, bool), np.ones(3, "f4"), np.ones((3, 4), "f4"), out=out)
    with pytest.raises(ArgumentError, match=r"out has shape \[3,4\]; expected \[n,n\] with n = 3"):
        k(np.ones(3, bool), np.ones(3, "f4"), np.ones((3, 3), "f4"), out=np.ones((3, 4), "f4"))
    assert (out == 7).all()


# ---- what a C++ caller sees ----


def strict(workload, *args):
    return kernel(workload).function(*args)


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
    ],
)
def test_exported_function_checks_its_arguments(args, error, text):
    with pytest.raises(error, match=text):
        strict(SAME, *args)


def test_exported_function_refuses_overlap_in_part():
    w = Workload((8,), (8,), (8,), "uint8")
    memory = np.zeros(9, "u1")
    cond, other = np.ones(8, bool), np.ones(8, "u1")
    with pytest.raises(ValueError, match="out overlaps then; expected memory of its own"):
        strict(w, cond, memory[:8], other, memory[1:])
    with pytest.raises(ValueError, match="out overlaps cond; expected memory of its own"):
        strict(w, memory[:8].view(bool), other, other, memory[:8])
    assert not memory.any()
    strict(w, cond, other, memory[:8], memory[:8])
    assert memory.tolist() == [1] * 8 + [0]


def test_exported_function_compares_named_dims():
    w = Workload(("n",), ("n",), ("n",), "float32")
    three, four = np.ones(3, "f4"), np.ones(4, "f4")
    with pytest.raises(ValueError, match=r"then has shape \[4\]; expected \[n\] with n = 3"):
        strict(w, np.ones(3, bool), four, three, three)


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


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Hand(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Any(ctypes.Structure):
    _fields_ = (("index", ctypes.c_int32), ("pad", ctypes.c_uint32), ("value", ctypes.c_void_p))


def hand_made(array, *, shape=None, offset=0, data=None, device=1):
    """A tensor of our own making, without strides."""
    extents = (ctypes.c_int64 * array.ndim)(*(shape or array.shape))
    pointer = array.ctypes.data - offset if data is None else data
    code = 6 if array.dtype == bool else 2
    dtype = (ctypes.c_uint8 * 4)(code, 8 * array.itemsize, 1, 0)
    tensor = _DLTensor(pointer, (device, 0), array.ndim, dtype, extents, None, offset)
    managed = _Hand(tensor)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p),
    )

    class Holder:
        keep = (array, extents, managed)

        def __dlpack_device__(self):
            return (device, 0)

        def __dlpack__(self):
            return new(ctypes.addressof(managed), b"dltensor", None)

    return Holder()


def test_byte_offset_null_strides_and_null_data():
    out = np.zeros((3, 4), "f4")
    kernel(SAME)(COND, hand_made(THEN, offset=16), hand_made(ELSE), out=out)
    assert (out == 1).all()
    tensors = [tvm_ffi.from_dlpack(hand_made(x, offset=8)) for x in (COND, ELSE, THEN, out)]
    strict(SAME, *tensors)
    assert (out == 0).all()
    with pytest.raises(ArgumentError, match="then has no memory"):
        kernel(SAME)(COND, hand_made(THEN, data=0), ELSE)
    with pytest.raises(ValueError, match="then has a null data pointer; expected 48 bytes"):
        strict(SAME, COND, tvm_ffi.from_dlpack(hand_made(THEN, data=0)), ELSE, out)


def test_sizes_that_overflow_are_refused_in_the_exported_function():
    w = Workload(("a", "b"), ("a", "b"), ("a", "b"), "float32")
    huge = [hand_made(x, shape=(2**40, 2**40)) for x in (COND, THEN, ELSE, ELSE)]
    with pytest.raises(ValueError, match="cond has too many elements"):
        strict(w, *(tvm_ffi.from_dlpack(x) for x in huge))
    with pytest.raises(ValueError, match="cond is on DLPack device"):
        cuda = tvm_ffi.from_dlpack(hand_made(COND, device=2))
        strict(SAME, cuda, THEN, ELSE, ELSE)


def test_tensor_without_a_shape_is_refused_in_the_exported_function():
    held = [hand_made(x).keep for x in (COND, THEN, ELSE, ELSE.copy())]
    args = (_Any * 4)(*(_Any(7, 0, ctypes.addressof(keep[2])) for keep in held))
    function = ctypes.CDLL(str(kernel(SAME).path))[f"__tvm_ffi_{SAME.name}"]
    assert function(None, args, 4, ctypes.byref(_Any())) == 0
    assert held[3][0].all()
    then = held[1][2].tensor
    then.ndim = 1000  # only 64 of them are read for the message, from a shape of that many
    then.shape = (ctypes.c_int64 * 64)()
    assert function(None, args, 4, ctypes.byref(_Any())) == -1
    then.shape = None
    for ndim in (1, 2, 1000):
        then.ndim = ndim
        assert function(None, args, 4, ctypes.byref(_Any())) == -1


def test_failing_task_is_an_error():
    with pytest.raises(RuntimeError, match="the kernel failed"):
        kernel(SAME, 1, 1)(COND, THEN, ELSE)
