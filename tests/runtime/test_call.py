"""Calls that give a result: every kind of operand, against NumPy bit for bit."""

from __future__ import annotations

import threading

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from te_select.errors import ArgumentError
from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from te_select.operator.workload import Workload
from tests.support.hand_made import HandMade
from tests.support.runtime_standin import kernel

SHAPE = (3, 5)


def bits_of(array):
    """The bytes of a tensor of any library."""
    if hasattr(array, "untyped_storage"):
        import torch

        array = array.detach().contiguous().resolve_conj().resolve_neg().reshape(-1)
        return array.view(torch.uint8).numpy().tobytes()
    return np.asarray(array).tobytes()


def random(shape, dtype, seed=0):
    """Random bits, and so NaN payloads too."""
    dtype = np.dtype(dtype) if not isinstance(dtype, str) else numpy_dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    data = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    if dtype == np.bool_:
        data &= 1
    return data.view(dtype).reshape(shape)


def mask(shape, seed=9):
    return np.random.default_rng(seed).integers(0, 2, shape).astype(bool)


def expected(cond, then, else_):
    """numpy.where on unsigned ints; NumPy's own copies of bits."""
    width = then.dtype.itemsize
    carrier = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}.get(width)
    if carrier is None:
        return np.where(cond, then, else_)
    return np.where(cond, then.view(carrier), else_.view(carrier)).view(then.dtype)


def same(dtype="float32", shape=SHAPE):
    return Workload(shape, shape, shape, dtype)


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES))
def test_every_element_type_is_copied_bit_for_bit(dtype):
    k = kernel(same(dtype))
    cond, then, else_ = mask(SHAPE), random(SHAPE, dtype, 1), random(SHAPE, dtype, 2)
    out = np.zeros_like(then)
    assert k(cond, then, else_, out=out) is out
    allocated = k(cond, then, else_)
    assert allocated.dtype == then.dtype
    assert bits_of(out) == bits_of(allocated) == bits_of(expected(cond, then, else_))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16", "complex64", "complex128"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
        lambda x: np.frombuffer(b"x" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
        lambda x: np.broadcast_to(x[:1], x.shape),
    ],
    ids=["rows reversed", "columns reversed", "fortran", "strided", "read-only", "misaligned", "0"],
)
def test_inputs_of_any_layout_are_taken(dtype, spoil):
    cond, then, else_ = (
        spoil(x) for x in (mask(SHAPE), random(SHAPE, dtype), random(SHAPE, dtype, 2))
    )
    before = then.copy()
    assert bits_of(kernel(same(dtype))(cond, then, else_)) == bits_of(expected(cond, then, else_))
    assert bits_of(then) == bits_of(before)


@pytest.mark.parametrize("writable", [True, False])
def test_strides_that_are_no_multiple_of_the_element(writable):
    record = np.zeros(5, [("pad", "u1"), ("then", "f4")])
    record["then"] = np.arange(5)
    record.flags.writeable = writable
    out = kernel(same("float32", (5,)))(np.ones(5, bool), record["then"], np.zeros(5, "f4"))
    assert out.tolist() == [0, 1, 2, 3, 4]


def test_cond_bytes_other_than_0_and_1_are_true():
    cond = np.array([0, 1, 2, 128, 255], np.uint8).view(bool)
    k = kernel(same("int8", (5,)))
    assert k(cond, np.ones(5, np.int8), np.zeros(5, np.int8)).tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "bfloat16"])
def test_out_of_any_layout_is_written(dtype):
    cond, then, else_ = mask(SHAPE), random(SHAPE, dtype, 1), random(SHAPE, dtype, 2)
    k, wanted = kernel(same(dtype)), bits_of(expected(cond, then, else_))
    memory = np.zeros((3, 10), then.dtype)
    assert k(cond, then, else_, out=memory[:, ::2]).tobytes() == wanted
    assert not memory[:, 1::2].any()
    buffer = bytearray(then.nbytes + 1)
    misaligned = np.frombuffer(buffer, then.dtype, offset=1).reshape(SHAPE)
    assert k(cond, then, else_, out=misaligned).tobytes() == wanted


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
@pytest.mark.parametrize("name", ["then", "else_"])
def test_in_place(dtype, name):
    args = {"cond": mask(SHAPE), "then": random(SHAPE, dtype, 1), "else_": random(SHAPE, dtype, 2)}
    wanted = bits_of(expected(**args))
    assert kernel(same(dtype))(**args, out=args[name]) is args[name]
    assert bits_of(args[name]) == wanted


@pytest.mark.parametrize("offset", [-1, 1, 3])
@pytest.mark.parametrize("name", ["cond", "then", "else_"])
def test_out_that_overlaps_in_part_gives_the_right_result(name, offset):
    k = kernel(same("uint8", (64,)))
    memory = random((80,), "uint8")
    args = {"cond": mask(64), "then": random((64,), "uint8", 1), "else_": random((64,), "uint8", 2)}
    view = memory[8:72].view(bool) if name == "cond" else memory[8:72]
    view[...] = args[name]
    args[name] = view
    wanted = bits_of(expected(**args))
    out = memory[8 + offset : 72 + offset]
    k(**args, out=out)
    assert bits_of(out) == wanted


def test_out_that_is_cond_gives_the_right_result():
    cond, then, else_ = mask(64), mask(64, 1), mask(64, 2)
    wanted = np.where(cond, then, else_)
    assert (kernel(same("bool", (64,)))(cond, then, else_, out=cond) == wanted).all()


def test_broadcast_input_that_is_part_of_out_is_copied_first():
    k = kernel(Workload((4, 4), (4,), (4, 4), "int32"))
    cond, else_, out = mask((4, 4)), random((4, 4), "int32"), random((4, 4), "int32", 3)
    wanted = np.where(cond, out[0].copy(), else_)
    assert (k(cond, out[0], else_, out=out) == wanted).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
def test_zero_size(dtype):
    k = kernel(Workload((4, 0), (4, 1), (), dtype, "multidirectional"))
    out = k(np.zeros((4, 0), bool), random((4, 1), dtype), random((), dtype))
    assert out.shape == (4, 0)
    assert out.dtype == numpy_dtype(dtype)
    assert k(np.zeros((4, 0), bool), random((4, 1), dtype), random((), dtype), out=out) is out


def test_scalars_of_rank_0():
    k = kernel(Workload((), (), (), "float32"))
    out = k(True, 1, np.float32(2))
    assert isinstance(out, np.ndarray)
    assert out.shape == ()
    assert out == 1
    assert k(np.False_, 1.5, float("-inf")) == -np.inf
    assert k(np.array(True), np.array(3, "f4"), 2.0) == 3


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", -128),
        ("uint64", 2**64 - 1),
        ("bool", True),
        ("bfloat16", 0.5),
        ("bfloat16", 2**64),
        ("bfloat16", 10**20),
        ("float8_e5m2", 2**15),
        ("complex64", 1 + 2j),
        ("float16", 3),
        ("complex128", 4),
        ("float8_e5m2", float("inf")),
        ("float64", float("nan")),
    ],
)
def test_python_scalars_of_every_kind(dtype, value):
    out = kernel(Workload((3,), (), (3,), dtype))(np.ones(3, bool), value, random((3,), dtype))
    wanted = value if abs(value) < 2**63 or dtype == "uint64" else float(value)
    assert bits_of(out) == bits_of(np.full(3, wanted, numpy_dtype(dtype)))


def test_named_dims_take_any_size():
    k = kernel(Workload(("b", 1), ("b", "n"), ("n",), "float32"))
    for b, n in ((1, 1), (2, 7), (0, 3), (5, 64)):
        cond, then, else_ = mask((b, 1)), random((b, n), "float32"), random((n,), "float32", 4)
        out = k(cond, then, else_)
        assert out.shape == (b, n)
        assert bits_of(out) == bits_of(expected(cond, then, else_))


@pytest.mark.parametrize("dtype", ["bool", "float32", "bfloat16", "float8_e4m3fn", "complex64"])
def test_torch_tensors(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    cond = mask(SHAPE)
    arrays = random(SHAPE, dtype, 1), random(SHAPE, dtype, 2)
    wanted = bits_of(expected(cond, *arrays))
    tensors = [torch.from_numpy(a.view(np.uint8).copy()).view(kind).reshape(SHAPE) for a in arrays]
    k = kernel(same(dtype))
    out = k(torch.from_numpy(cond), *tensors)
    assert out.dtype == kind
    assert bits_of(out) == wanted
    assert k(torch.from_numpy(cond), *tensors, out=tensors[0]) is tensors[0]
    assert bits_of(tensors[0]) == wanted


@pytest.mark.parametrize("step", [1, 2])
def test_writing_to_a_torch_out_is_seen_by_autograd(step):
    torch = pytest.importorskip("torch")
    x = torch.ones(4, requires_grad=True)
    out = torch.ones(4 * step)[::step]
    product = x * out
    before = out._version
    ones = torch.ones(4)
    kernel(same("float32", (4,)))(ones > 0, ones, ones, out=out)
    assert out._version > before
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    with torch.inference_mode():
        plain = torch.zeros(4 * step)[::step]
    kernel(same("float32", (4,)))(ones > 0, ones, ones, out=plain)
    assert torch.equal(plain, ones)


def test_torch_pending_conjugation_and_negation_are_resolved():
    torch = pytest.importorskip("torch")
    cond = torch.ones(4, dtype=torch.bool)
    z = torch.tensor([1 + 1j, 2 - 3j, 0j, 1j])
    assert torch.equal(kernel(same("complex64", (4,)))(cond, z.conj(), z), z.conj())
    x = torch._neg_view(torch.arange(4.0))
    assert torch.equal(kernel(same("float32", (4,)))(cond, x, torch.ones(4)), -torch.arange(4.0))
    out = torch._neg_view(torch.zeros(4))
    with pytest.raises(ValueError, match="out is a Tensor that cannot be written"):
        kernel(same("float32", (4,)))(cond, x, torch.ones(4), out=out)


def test_torch_inputs_with_gradient_are_read_where_none_is_recorded():
    torch = pytest.importorskip("torch")
    x = torch.nn.Parameter(torch.ones(4))
    with torch.no_grad():
        out = kernel(same("float32", (4,)))(torch.zeros(4, dtype=torch.bool), torch.zeros(4), x)
    assert torch.equal(out, torch.ones(4))
    assert not out.requires_grad


@pytest.mark.parametrize("dtype", ["bool", "float32", "bfloat16", "float8_e5m2", "complex64"])
def test_jax_arrays(dtype):
    jnp = pytest.importorskip("jax.numpy")
    cond, then, else_ = mask(SHAPE), random(SHAPE, dtype, 1), random(SHAPE, dtype, 2)
    out = kernel(same(dtype))(jnp.asarray(cond), jnp.asarray(then), jnp.asarray(else_))
    assert isinstance(out, jnp.ndarray)
    assert out.dtype == then.dtype
    assert bits_of(out) == bits_of(expected(cond, then, else_))


def test_tvm_ffi_tensors_and_mixed_kinds():
    cond, then, else_ = mask(SHAPE), random(SHAPE, "float32", 1), random(SHAPE, "float32", 2)
    wanted = bits_of(expected(cond, then, else_))
    k = kernel(same())
    out = k(cond, tvm_ffi.from_dlpack(then), else_)
    assert isinstance(out, tvm_ffi.Tensor)
    assert bits_of(np.from_dlpack(out)) == wanted
    target = tvm_ffi.from_dlpack(np.zeros(SHAPE, "f4"))
    assert k(*(tvm_ffi.from_dlpack(x) for x in (cond, then, else_)), out=target) is target
    assert bits_of(np.from_dlpack(target)) == wanted


def test_output_is_of_numpy_where_tvm_ffi_could_not_be_handed_it():
    """NumPy has no DLPack for the types of ml_dtypes, so it cannot pass on a new output of them."""
    arrays = [random(SHAPE, "bfloat16", seed) for seed in (1, 2)]
    cond = mask(SHAPE)
    then = tvm_ffi.from_dlpack(HandMade(arrays[0].view("u2"), dtype=(4, 16, 1)))
    assert then.dtype == "bfloat16"
    out = kernel(same("bfloat16"))(cond, then, arrays[1])
    assert isinstance(out, np.ndarray)
    assert out.dtype == ml_dtypes.bfloat16
    assert bits_of(out) == bits_of(expected(cond, *arrays))


def test_output_is_of_the_kind_of_the_first_tensor():
    torch = pytest.importorskip("torch")
    k = kernel(Workload((4,), (), (4,), "float32"))
    assert isinstance(k(np.ones(4, bool), 1.0, torch.zeros(4)), torch.Tensor)
    k = kernel(Workload((4,), (), (), "bfloat16", "multidirectional"))
    assert k(torch.ones(4, dtype=torch.bool), 1.0, 2.0).dtype == torch.bfloat16
    assert isinstance(k(np.ones(4, bool), 1.0, 2.0), np.ndarray)
    assert k(np.ones(4, bool), 1.0, 2.0).dtype == ml_dtypes.bfloat16


def test_torch_shapes_and_kinds_that_no_view_can_have():
    torch = pytest.importorskip("torch")
    k, cond = kernel(same()), torch.ones(SHAPE, dtype=torch.bool)
    one = torch.zeros(1)
    for bad in (
        one.reshape((1,) * 70),
        one.expand(2**31, 2**31),
        torch.empty(0, 2**61),
        torch.as_strided(one, (2**31, 2**31), (0, 0)),
        torch.nested.nested_tensor([torch.zeros(4)] * 3),
    ):
        for args in ((cond, bad, torch.ones(SHAPE)), (cond, *[torch.ones(SHAPE)] * 2)):
            with pytest.raises(ArgumentError) as caught:
                k(*args, **({} if args[1] is bad else {"out": bad}))
            assert "\n" not in str(caught.value)
    named = kernel(Workload((), ("a", "b"), ("a", "b"), "float32"))
    for big in (one.expand(2**31, 2**31), torch.empty(0, 2**61), one.expand(2**22, 2**22)):
        with pytest.raises(ArgumentError):
            named(True, big, big)


def test_torch_fake_tensors_are_refused():
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    tensors = [torch.ones(SHAPE, dtype=torch.bool), torch.ones(SHAPE), torch.ones(SHAPE)]
    with FakeTensorMode():
        fakes = [torch.zeros(SHAPE, dtype=x.dtype) for x in tensors]
        for args in (fakes, tensors):
            with pytest.raises(ArgumentError):
                kernel(same())(*args)


def test_eight_threads_call_one_parallel_kernel():
    shape = (64, 64)
    k = kernel(same("float32", shape), 1)
    failed = []

    def work(seed):
        then, else_ = random(shape, "float32", seed), random(shape, "float32", seed + 100)
        cond = mask(shape, seed)
        wanted = bits_of(expected(cond, then, else_))
        for _ in range(50):
            if bits_of(k(cond, then, else_)) != wanted:
                failed.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
