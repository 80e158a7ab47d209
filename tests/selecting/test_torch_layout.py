"""The layout of a new tensor is the one that torch.where gives."""

import random

import pytest

from te_select import where

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402

from te_select.torch import where as of_torch  # noqa: E402


def drawn(draw, shape, dtype):
    """A tensor whose axes lie in memory in any order, some of them with gaps."""
    order = draw.sample(range(len(shape)), len(shape))
    gaps = [draw.choice((1, 1, 2)) for _ in shape]
    memory = torch.zeros([shape[axis] * gaps[axis] for axis in order], dtype=dtype)
    tensor = memory.permute([order.index(axis) for axis in range(len(shape))])
    return tensor[tuple(slice(None, None, gap) for gap in gaps)]


def with_odd_strides(draw, tensor):
    """The same tensor, whose strides along axes of extent 1 may be any."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    odd = [draw.choice((0, 1, 5, 7, step)) if extent == 1 else step for extent, step in steps]
    return tensor.as_strided(tensor.shape, odd)


def part_of(draw, shape, dtype):
    """An operand of any layout that broadcasts to a shape."""
    kept = shape[draw.choice((0, 0, 0, 1)) :]
    made = drawn(draw, [draw.choice((1, n, n, n)) for n in kept], dtype)
    if made.ndim in LAST and draw.random() < 0.3:
        made = made.contiguous(memory_format=LAST[made.ndim])
    if made.ndim and draw.random() < 0.1:
        made = made[:1].expand(made.shape)
    return with_odd_strides(draw, made)


LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def in_plan(tensor):
    """A tensor without memory, of the same strides."""
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=torch.device("meta")
    )


def by_operator(cond, x, y):
    """The ways of a call of tensors alone."""
    ways = {"operator": torch.ops.te_select.where(cond, x, y)}
    ways["gradient"] = of_torch(cond, x.detach().requires_grad_(), y)

    def differentiated(x):
        ways["func.grad"] = of_torch(cond, x, y)
        return ways["func.grad"].sum()

    torch.func.grad(differentiated)(x)
    return ways


def planned(*given):
    """The ways of a call of tensors without memory, and torch's strides there."""
    ways = {}
    plans = [*map(in_plan, given)]
    ways["meta"] = of_torch(*plans)
    ways["meta operator"] = torch.ops.te_select.where(*plans)
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(each) for each in given]
        ways["fake"] = of_torch(*fakes)
        ways["fake operator"] = torch.ops.te_select.where(*fakes)
    return ways, torch.where(*plans).stride()


def same(ways, expected, given):
    found = {way: result.stride() for way, result in ways.items()}
    assert found == dict.fromkeys(ways, expected), given


@pytest.mark.parametrize("extents", [(2, 3, 4), (1, 1, 2, 3), (1,), (0, 1, 2)], ids=str)
def test_every_way_of_a_call_has_the_strides_of_torch(extents):
    draw = random.Random(0)
    for _ in range(200):
        shape = [draw.choice(extents) for _ in range(draw.randrange(6))]
        x, y = (part_of(draw, shape, torch.float32) for _ in range(2))
        cond = part_of(draw, shape, torch.bool)
        if draw.random() < 0.3:
            y, cond = (with_odd_strides(draw, each) for each in (x, x > 0))
        y = draw.choice((y, y, 2.5, torch.tensor(2.5)))
        for given in ((cond, x, y), (cond, y, x)):
            ways = {"eager": of_torch(*given), "drop-in": where(*given)}
            ways["drop-in, again"] = where(*given)  # by the path with the fewest checks
            if not isinstance(y, float):
                ways |= by_operator(*given)
                same(*planned(*given), given)
            same(ways, torch.where(*given).stride(), given)


@pytest.mark.parametrize("step", [0, 1, 2])
def test_channels_last_is_compact_whatever_lies_along_ones(step):
    cond = torch.zeros(9, dtype=torch.bool).as_strided((1, 2, 1, 3), (step, 1, step, 2))
    x = torch.zeros(9).as_strided(cond.shape, cond.stride())
    assert of_torch(cond, x, x).stride() == torch.where(cond, x, x).stride() == (6, 1, 6, 2)
