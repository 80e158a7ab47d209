"""te_select::where on DTensors: every placement, gradients and out, by gloo among processes."""

import math
from concurrent.futures import ThreadPoolExecutor

from pytest import importorskip, mark, param, skip

from tests.support import ROOT, python

torch = importorskip("torch")
if not torch.distributed.is_available():
    skip("torch without torch.distributed", allow_module_level=True)

PROGRAM = """
    import itertools, os, sys
    import torch
    import torch.distributed as dist
    from te_select.torch import where
    from te_select.selecting import torch_operator

    rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    dims = tuple(map(int, sys.argv[4].split(",")))
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=world)
    assert "torch.distributed.tensor" not in sys.modules
    from torch.distributed.tensor import (
        DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh)

    mesh = init_device_mesh("cpu", dims)
    by_kernels, ours = torch_operator.by_kernels, []
    torch_operator.by_kernels = lambda *a: by_kernels(*a) if type(a[1]) is DTensor else (
        ours.append(1) or by_kernels(*a))
    SHAPES = [
        ((6, 5), (6, 5), (6, 5)), ((6, 1), (6, 5), ()), ((5,), (6, 5), (6, 1)),
        ((1, 5), (6, 1), (6, 5)), ((3, 1, 4), (2, 1), (4,)), ((7,), (1,), (7,)),
        ((6, 5), (), (6, 5)),
    ]

    def placements(shape, may_be_partial):
        on_one = [Replicate(), *map(Shard, range(len(shape)))] + [Partial()] * may_be_partial
        return list(itertools.product(on_one, repeat=len(dims)))

    def placed(value, where_to):
        # A partial sum: the first part has all.
        if not any(each.is_partial() for each in where_to):
            return distribute_tensor(value, mesh, where_to)
        whole = [Replicate() if each.is_partial() else each for each in where_to]
        local = distribute_tensor(value, mesh, whole).to_local()
        at = mesh.get_coordinate()
        if any(each.is_partial() and at[k] for k, each in enumerate(where_to)):
            local = torch.zeros_like(local)
        stride = torch.empty(value.shape).stride()
        return DTensor.from_local(
            local, mesh, where_to, run_check=False, shape=value.shape, stride=stride)

    torch.manual_seed(0)
    calls = 0
    for shapes in SHAPES:
        cond, x, y = torch.rand(shapes[0]) < 0.5, torch.randn(shapes[1]), torch.randn(shapes[2])
        weights = torch.randn(torch.broadcast_shapes(*shapes))
        expected = torch.where(cond, x, y)
        sides = [side.clone().requires_grad_() for side in (x, y)]
        (torch.where(cond, *sides) * weights).sum().backward()
        chosen = list(itertools.product(
            placements(shapes[0], False), placements(shapes[1], True), placements(shapes[2], True)))
        for number, (c, a, b) in enumerate(chosen):
            if number % int(sys.argv[5]):
                continue
            case = shapes, c, a, b
            given = placed(cond, c), placed(x, a), placed(y, b)
            for function in (where, torch.ops.te_select.where):
                found = function(*given)
                assert type(found) is DTensor, case
                assert torch.equal(found.full_tensor(), expected), case
            calls += 1
            if any(each.is_partial() for each in (*a, *b)):
                continue  # a leaf that is a partial sum has no gradient of its own
            leaves = [placed(side, to).detach().requires_grad_() for side, to in ((x, a), (y, b))]
            out = where(given[0], *leaves)
            (out * distribute_tensor(weights, mesh, [Replicate()] * len(dims))).sum().backward()
            for leaf, side in zip(leaves, sides):
                assert torch.allclose(leaf.grad.full_tensor(), side.grad, atol=1e-6), case
    assert len(ours) >= 2 * calls, (len(ours), calls)

    # A number, tensors of two types, out=, and a shape that does not fit.
    cond, x = torch.arange(96).reshape(12, 8) % 3 == 0, torch.arange(96.0).reshape(12, 8)
    shard = [Shard(0)] * len(dims)
    c, a = distribute_tensor(cond, mesh, shard), distribute_tensor(x, mesh, shard)
    assert torch.equal(where(c, a, -1e9).full_tensor(), torch.where(cond, x, -1e9))
    try:
        where(c, a, torch.ones(5, 8))
    except RuntimeError as error:
        assert "DTensor" in str(error), error
    else:
        raise AssertionError("a tensor that is no DTensor was taken")
    for to in ([Replicate()] * len(dims), shard, [Shard(1)] * len(dims)):
        out = distribute_tensor(torch.zeros(12, 8), mesh, to)
        for function in (where, torch.ops.te_select.where.out):
            out.zero_()
            function(c, a, a * 2, out=out)
            assert torch.equal(out.full_tensor(), torch.where(cond, x, 2 * x)), to
            assert out.placements == tuple(to)
    print(calls, flush=True)
    dist.destroy_process_group()
"""


@mark.parametrize(
    "dims, every, least",
    [
        ((2,), 25, 6),
        param((4,), 5, 48, marks=mark.long),
        param((2, 2), 61, 28, marks=mark.slow),
        param((2,), 1, 242, marks=mark.long),
    ],
    ids=str,
)
def test_results_and_gradients_are_those_of_one_device(tmp_path, dims, every, least):
    world = math.prod(dims)
    words = (world, tmp_path / "store", ",".join(map(str, dims)), every)

    def run(rank):
        return python(PROGRAM, rank, *words, PYTHONPATH=ROOT, OMP_NUM_THREADS="1")

    with ThreadPoolExecutor(world) as ranks:
        said, *_ = ranks.map(run, range(world))
    assert int(said) >= least
