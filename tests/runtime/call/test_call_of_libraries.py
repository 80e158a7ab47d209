"""Calls with tensors of torch, JAX and tvm-ffi, against NumPy bit for bit."""

import ml_dtypes
import numpy as np
import tvm_ffi
from pytest import importorskip, mark, raises

from te_select import ArgumentError, Workload
from tests.support.hand_made import HandMade
from tests.support.operands import SHAPE, bits_of, expected, mask, random, same
from tests.support.runtime_standin import kernel


@mark.parametrize("step", [1, 2])
def test_writing_to_a_torch_out_is_seen_by_autograd(step):
    torch = importorskip("torch")
    out = torch.ones(4 * step)[::step]
    ones = torch.ones(4)
    for _ in range(2):  # with the first call, torch is known
        before = out._version
        kernel(same("float32", (4,)))(ones > 0, ones, ones, out=out)
        assert out._version > before
    with torch.inference_mode():
        plain = torch.zeros(4 * step)[::step]
    kernel(same("float32", (4,)))(ones > 0, ones, ones, out=plain)
    assert torch.equal(plain, ones)


def test_torch_pending_conjugation_and_negation_are_resolved():
    torch = importorskip("torch")
    cond = torch.tensor([True, False, True, False])
    z = torch.tensor([1 + 1j, 2 - 3j, 0j, 1j])
    x = torch._neg_view(torch.arange(1.0, 5.0))
    for dtype, odd, plain in (("complex64", z.conj(), z), ("float32", x, torch.ones(4))):
        for sides in ((odd, plain), (plain, odd), (odd, odd)):
            for out in (None, torch.zeros_like(plain)):
                found = kernel(same(dtype, (4,)))(cond, *sides, out=out)
                assert torch.equal(found, torch.where(cond, *sides))
    out = torch._neg_view(torch.zeros(4))
    with raises(ValueError, match="out is a Tensor that cannot be written"):
        kernel(same("float32", (4,)))(cond, x, torch.ones(4), out=out)


@mark.parametrize("dtype", ["bool", "float32", "bfloat16", "float8_e5m2", "complex64"])
def test_jax_arrays(dtype):
    jnp = importorskip("jax.numpy")
    cond = mask(SHAPE)
    then = random(SHAPE, dtype, 1)
    else_ = random(SHAPE, dtype, 2)
    out = kernel(same(dtype))(jnp.asarray(cond), jnp.asarray(then), jnp.asarray(else_))
    assert isinstance(out, jnp.ndarray)
    assert out.dtype == then.dtype
    assert bits_of(out) == bits_of(expected(cond, then, else_))


def test_tvm_ffi_tensors_and_mixed_kinds():
    cond = mask(SHAPE)
    then = random(SHAPE, "float32", 1)
    else_ = random(SHAPE, "float32", 2)
    out = kernel(same())(cond, tvm_ffi.from_dlpack(then), else_)
    assert isinstance(out, tvm_ffi.Tensor)
    assert bits_of(np.from_dlpack(out)) == bits_of(expected(cond, then, else_))


def test_output_tvm_ffi_could_not_be_handed_is_numpys():
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
    torch = importorskip("torch")
    k = kernel(Workload((4,), (), (4,)))
    assert isinstance(k(np.ones(4, bool), 1.0, torch.zeros(4)), torch.Tensor)
    k = kernel(Workload((4,), (), (), "bfloat16", "multidirectional"))
    assert k(torch.ones(4, dtype=torch.bool), 1.0, 2.0).dtype == torch.bfloat16
    assert isinstance(k(np.ones(4, bool), 1.0, 2.0), np.ndarray)
    assert k(np.ones(4, bool), 1.0, 2.0).dtype == ml_dtypes.bfloat16


def test_torch_shapes_and_kinds_that_no_view_can_have():
    torch = importorskip("torch")
    k = kernel(same())
    cond = torch.ones(SHAPE, dtype=torch.bool)
    one = torch.zeros(1)
    for bad in (
        one.reshape((1,) * 70),
        one.expand(2**31, 2**31),
        torch.empty(0, 2**61),
        torch.as_strided(one, (2**31, 2**31), (0, 0)),
        torch.nested.nested_tensor([torch.zeros(4)] * 3),
    ):
        for args in ((cond, bad, torch.ones(SHAPE)), (cond, *[torch.ones(SHAPE)] * 2)):
            with raises(ArgumentError) as caught:
                k(*args, **({} if args[1] is bad else {"out": bad}))
            assert "\n" not in str(caught.value)
    named = kernel(Workload((), ("a", "b"), ("a", "b")))
    for big in (one.expand(2**31, 2**31), torch.empty(0, 2**61), one.expand(2**22, 2**22)):
        with raises(ArgumentError):
            named(True, big, big)
