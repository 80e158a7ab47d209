"""The samples and errors that torch has for tests of its own where, for that of te_select.torch."""

import os
from functools import partial

import torch
from pytest import mark, raises
from torch.testing._internal.common_methods_invocations import op_db

import te_select.torch

INFO = next(op for op in op_db if op.name == "where" and not op.variant_test_name)
OURS = te_select.torch.where
WHERE = torch.where if os.environ.get("PEERS") == "plain" else OURS
TYPES = sorted(INFO.supported_dtypes("cpu"), key=str)
DIFFERENTIABLE = [torch.float64, torch.complex128]


def samples(dtype, requires_grad=False):
    """Arguments in the order of where()."""
    for sample in INFO.sample_inputs("cpu", dtype, requires_grad):
        yield sample.args[0], sample.input, *sample.args[1:]


@mark.parametrize("dtype", TYPES, ids=str)
def test_samples(dtype):
    for given in samples(dtype):
        found = WHERE(*given)
        expected = torch.where(*given)
        assert (found.dtype, found.stride()) == (expected.dtype, expected.stride())
        assert found.shape == expected.shape
        assert torch.equal(*(each.reshape(-1).view(torch.uint8) for each in (found, expected)))


def test_errors():
    for wrong in INFO.error_inputs("cpu"):
        sample = wrong.sample_input
        with raises(wrong.error_type):
            WHERE(sample.args[0], sample.input, *sample.args[1:])


@mark.parametrize("dtype", DIFFERENTIABLE, ids=str)
def test_gradients(dtype):
    for cond, x, y in samples(dtype, requires_grad=True):
        sides = [each for each in (x, y) if isinstance(each, torch.Tensor)]
        assert torch.autograd.gradcheck(partial(WHERE, cond), sides)
        assert torch.autograd.gradgradcheck(partial(WHERE, cond), sides)


@mark.parametrize("dtype", TYPES, ids=str)
def test_operator(dtype):
    for given in samples(dtype):
        torch.library.opcheck(torch.ops.te_select.where.default, given)
