"""The layout of a new tensor is the one that torch.where gives."""

import itertools
import random

import pytest

import te_select

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


@pytest.mark.parametrize("extents", [(2, 3, 4), (1, 1, 2, 3), (1,), (0, 1, 2)], ids=str)
def test_strides_of_any_inputs_are_those_of_torch(extents):
    draw = random.Random(0)
    for _ in range(300):
        shape = [draw.choice(extents) for _ in range(draw.randrange(6))]

        def part(dtype, shape=shape):
            kept = shape[draw.choice((0, 0, 0, 1)) :]
            made = drawn(draw, [draw.choice((1, n, n, n)) for n in kept], dtype)
            if made.ndim == 4 and draw.random() < 0.3:
                made = made.contiguous(memory_format=torch.channels_last)
            return with_odd_strides(draw, made)

        x = part(torch.float32)
        y = draw.choice((part(torch.float32), 2.5, torch.tensor(2.5)))
        for given in ((part(torch.bool), x, y), (part(torch.bool), y, x)):
            expected = torch.where(*given).stride()
            # Which path a call takes depends on the calls before.
            assert [te_select.where(*given).stride() for _ in range(2)] == [expected] * 2


@pytest.mark.parametrize("shape", [(2, 3, 1, 4), (2, 3, 4, 1), (1, 3, 4, 5), (2, 1, 3, 4)], ids=str)
def test_inputs_of_one_shape_and_order_give_torchs_strides(shape):
    draw = random.Random(0)
    last = torch.rand(*shape).contiguous(memory_format=torch.channels_last)
    reversed_axes = torch.rand(*shape[::-1]).permute(3, 2, 1, 0)
    for tensor in [last, reversed_axes] * 50:
        x, y, cond = (with_odd_strides(draw, each) for each in (tensor, tensor, tensor > 0.5))
        same = cond.as_strided(shape, x.stride())
        for given in ((cond, x, y), (same, x, x)):
            assert te_select.where(*given).stride() == torch.where(*given).stride()


def channels_last(tensor):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return tensor.contiguous(memory_format=formats.get(tensor.ndim, torch.contiguous_format))


LAYOUTS = {
    "contiguous": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.mT.contiguous().mT,
    "channels last": channels_last,
    "expanded": lambda tensor: tensor[:1].expand(tensor.shape),
    "sliced": lambda tensor: torch.cat([tensor, tensor], -1)[..., ::2],
    "axis of 1": lambda tensor: tensor[:, :1],
}
SHAPES = ((5, 5), (2, 3, 4), (2, 3, 4, 5), (1, 3, 1, 5), (2, 3, 2, 4, 5))


def in_layouts(shape, names):
    """Operands in layouts, and the strides of what torch makes of them."""
    cond, x, y = (LAYOUTS[name](torch.rand(shape)) for name in names)
    given = LAYOUTS[names[0]](cond.expand(shape) > 0.5), x, y
    return given, torch.where(*given).stride()


def in_plan(tensor):
    """A tensor without memory, of the same strides."""
    return torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=torch.device("meta")
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_way_of_a_call_has_the_strides_of_torch(shape):
    for names in itertools.product(LAYOUTS, repeat=3):
        given, expected = in_layouts(shape, names)
        cond, x, y = given
        ways = {
            "eager": of_torch(*given),
            "drop-in": te_select.where(*given),
            "drop-in, again": te_select.where(*given),  # by the path with the fewest checks
            "operator": torch.ops.te_select.where(*given),
            "gradient": of_torch(cond, LAYOUTS[names[1]](x.expand(shape)).requires_grad_(), y),
            "meta": of_torch(*map(in_plan, given)),
            "meta operator": torch.ops.te_select.where(*map(in_plan, given)),
        }
        with FakeTensorMode() as mode:
            fakes = [mode.from_tensor(each) for each in given]
            ways["fake"] = of_torch(*fakes)
            ways["fake operator"] = torch.ops.te_select.where(*fakes)

        def differentiated(x, cond=cond, y=y, ways=ways):
            ways["func.grad"] = of_torch(cond, x, y)
            return ways["func.grad"].sum()

        torch.func.grad(differentiated)(x)
        found = {way: result.stride() for way, result in ways.items()}
        assert found == dict.fromkeys(ways, expected), names
