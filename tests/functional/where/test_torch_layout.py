"""The layout of a new tensor is the one that torch.where gives."""

from __future__ import annotations

import itertools
import random

import pytest

import te_select
from te_select.functional.where.torch_layout import strides

torch = pytest.importorskip("torch")

FORMATS = {
    "contiguous": torch.contiguous_format,
    "channels last": torch.channels_last,
}


def drawn(draw, shape, dtype):
    """A tensor whose axes lie in memory in any order, some of them with gaps."""
    order = draw.sample(range(len(shape)), len(shape))
    gaps = [draw.choice((1, 1, 2)) for _ in shape]
    memory = torch.zeros([shape[axis] * gaps[axis] for axis in order], dtype=dtype)
    tensor = memory.permute([order.index(axis) for axis in range(len(shape))])
    return tensor[tuple(slice(None, None, gap) for gap in gaps)]


@pytest.mark.parametrize("seed", range(20))
def test_strides_of_any_inputs_are_those_of_torch(seed):
    draw = random.Random(seed)
    for _ in range(100):
        shape = [draw.choice((2, 3, 4)) for _ in range(draw.randrange(2, 5))]

        def part(dtype, shape=shape):
            kept = shape[draw.choice((0, 0, 0, 1)) :]
            return drawn(draw, [draw.choice((1, n, n, n)) for n in kept], dtype)

        inputs = part(torch.bool), part(torch.float32), part(torch.float32)
        expected = torch.where(*inputs)
        found = strides(expected.shape, inputs)
        same = len({tensor.shape for tensor in inputs}) == 1  # torch then takes a shortcut
        moving = [n > 1 or not same for n in expected.shape]
        assert [*itertools.compress(found, moving)] == [
            *itertools.compress(expected.stride(), moving)
        ], [(tensor.shape, tensor.stride()) for tensor in inputs]


@pytest.mark.parametrize("cond_format", FORMATS)
@pytest.mark.parametrize("y_format", FORMATS)
@pytest.mark.parametrize("x_format", FORMATS)
def test_memory_formats_are_kept(x_format, y_format, cond_format):
    formats = [FORMATS[name] for name in (cond_format, x_format, y_format)]
    cond, x, y = (torch.rand(2, 3, 4, 5).contiguous(memory_format=each) for each in formats)
    channel = torch.rand(3, 1, 1)
    for given in ((cond > 0.5, x, y), (cond > 0.5, x, -1.0), (cond > 0.5, channel, y)):
        for _ in range(2):  # the second call takes the path with the fewest checks
            found, expected = te_select.where(*given), torch.where(*given)
            assert found.stride() == expected.stride()
            assert torch.equal(found, expected)
