"""Tensors of torch, CuPy and JAX in calls of CUDA kernels, without a GPU."""

import numpy as np
from pytest import fixture, importorskip, mark, raises

from te_select import ArgumentError
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.runtime.call.cuda.device import torch_bits
from tests.support import alike, flat
from tests.support.cuda_libraries import STREAM, CupyArray, JaxArray, install
from tests.support.cuda_standin import SHAPE, data, kernel, running

W = alike(*SHAPE)
COND, THEN, ELSE = data()
WANT = np.where(COND, THEN, ELSE)


@fixture
def fake(monkeypatch):
    install(monkeypatch)
    with running(W) as library:
        yield library


@mark.parametrize("stream, launched", [(STREAM, STREAM), (0, None)])
def test_cupy_arrays_are_handed_over_for_the_launchs_stream(fake, monkeypatch, stream, launched):
    install(monkeypatch, stream=stream)
    monkeypatch.setattr(CupyArray, "is_old", stream == STREAM)
    arrays = [CupyArray(array) for array in (COND, THEN, ELSE)]
    out = kernel(W)(*arrays)
    assert fake.fake_last().contents.stream == launched
    assert type(out) is CupyArray and out.values.tobytes() == WANT.tobytes()
    assert all(array.streams == [launched] for array in (*arrays, out))
    assert fake.fake_waits() == 0


def test_strided_cupy_arrays_are_copied_and_written(fake):
    k = kernel(W)
    cond, else_ = CupyArray(COND), CupyArray(ELSE)
    assert k(cond, CupyArray(THEN, step=2), else_).values.tobytes() == WANT.tobytes()
    out = CupyArray(np.zeros(SHAPE, "f4"), step=3)
    assert k(cond, CupyArray(THEN), else_, out=out) is out
    assert np.array_equal(out.values, WANT)


def test_jax_arrays_are_waited_for_and_the_result_is_complete(fake):
    arrays = [JaxArray(array) for array in (COND, THEN, ELSE)]
    out = kernel(W)(*arrays)
    assert isinstance(out, JaxArray) and out.values.tobytes() == WANT.tobytes()
    assert all(array.waited == 1 for array in (*arrays, out))
    assert fake.fake_waits() == 1
    with raises(ArgumentError, match="immutable"):
        kernel(W)(*arrays, out=arrays[1])


def test_two_libraries_in_one_call_are_waited_for(fake):
    out = kernel(W)(CupyArray(COND), JaxArray(THEN), CupyArray(ELSE))
    assert isinstance(out, JaxArray) and out.values.tobytes() == WANT.tobytes()
    assert fake.fake_waits() == 2


@mark.parametrize("dtype", sorted(ELEMENT_TYPES))
def test_torch_tensors_are_handed_over_as_bits(dtype):
    torch = importorskip("torch")
    element = ELEMENT_TYPES[dtype]
    words = torch.arange(6 * element.width, dtype=torch.uint8)
    tensor = words.remainder(2).view(getattr(torch, dtype)).reshape(2, 3)
    bits = torch_bits(tensor, element.width)
    assert bits.data_ptr() == tensor.data_ptr()
    assert bits.numel() * bits.element_size() == words.numel()
    assert bits.dtype.is_floating_point == (element.width == 16)


def test_lazily_conjugated_torch_tensors_are_resolved():
    torch = importorskip("torch")
    workload = flat(3, "complex64")
    with running(workload):
        k = kernel(workload)
        cond, side = torch.ones(3, dtype=torch.bool), torch.ones(3, dtype=torch.complex64)
        assert k._torch_inputs(cond, side, side) is not None
        assert k._torch_inputs(cond, side, side.conj()) is None
        assert k._torch_inputs(cond, side.conj().imag, side) is None


def test_tensor_that_requires_grad_is_refused_as_such():
    torch = importorskip("torch")
    with running(W):
        cond, then, else_ = (torch.from_numpy(array) for array in (COND, THEN, ELSE))
        with raises(ArgumentError, match="then requires grad"):
            kernel(W)(cond, then.requires_grad_(), else_)
