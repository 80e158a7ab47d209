"""Kernels on a real CUDA device: ``pytest -m gpu``. Skipped if there is none."""

from functools import cache

from pytest import importorskip, mark, skip

import te_select
from te_select import Workload
from te_select.runtime.call.cuda import driver
from te_select.verify.cuda import OnDevice
from te_select.verify.verify import verify_kernel
from tests.support import flat_and_scalar, masked_rows, shapes

pytestmark = mark.gpu

SHAPES = """\
100003 100003 100003
1,1,65,64 2,3,65,64 ()
4,1,1,129 4,3,17,129 ()
300,1 300,1021 300,1021
4099,1 4099,3 4099,3
64,7,1 64,7,32 32
33,1,40 33,6,1 6,40
8,1,1 8,33,17 1,33,17
() 1000 1000
5000 () ()
n,1 n,m m
""".splitlines()
DTYPES = ("uint8", "bfloat16", "float32", "float64", "complex128")
W = Workload((64, 1), (64, 65), (64, 65))


@cache
def kernel(workload):
    return te_select.compile(workload, "cuda")


@cache
def libtorch():
    torch = importorskip("torch")
    if not torch.cuda.is_available():
        skip("torch sees no CUDA device")
    return torch


def tensors(workload=W, seed=0):
    torch = libtorch()
    generator = torch.Generator("cuda").manual_seed(seed)

    def random(shape):
        return torch.randn(shape, device="cuda", generator=generator)

    return random(workload.cond_shape) > 0, random(workload.then_shape), random(workload.else_shape)


@mark.parametrize("dtype", DTYPES)
def test_every_pattern_is_right_bit_for_bit(dtype, tmp_path):
    workloads = [Workload(*shapes(each), dtype, "multidirectional") for each in SHAPES]
    library = te_select.load(te_select.export(workloads, tmp_path / "lib.so", "cuda"))
    for each in library.values():
        failed = [result for result in verify_kernel(OnDevice(each)) if not result.passed]
        assert not failed


def test_more_than_2_to_the_31_elements():
    torch = libtorch()
    count = (1 << 31) + 77
    if torch.cuda.mem_get_info()[0] < 5 * count:
        skip("needs 10 GiB of device memory")
    workload = flat_and_scalar(count, "uint8")
    cond = torch.ones(count, dtype=torch.bool, device="cuda")
    then = torch.full((count,), 3, dtype=torch.uint8, device="cuda")
    cond[-5:] = False
    out = kernel(workload)(cond, then, 9)
    assert out[-6:].tolist() == [3, 9, 9, 9, 9, 9]
    assert int((out == 3).sum()) == count - 5


def test_torch_tensors_of_any_layout_and_outputs():
    torch = libtorch()
    cond, then, else_ = tensors()
    k = kernel(W)
    assert k(cond, then, else_).device == then.device
    memory = torch.randn(65 * 65, device="cuda")
    inside, beside = (memory[at:][: 64 * 65].view(64, 65) for at in (0, 65))
    shifted = torch.empty(then.numel() + 1, device="cuda")[1:].view_as(then).copy_(then)
    version = then._version
    for side, out in (
        (then, torch.empty_like(then)),
        (then, torch.zeros(64, 130, device="cuda")[:, ::2]),
        (then.t().contiguous().t(), None),
        (shifted, None),
        (inside, beside),
        (then, then),
    ):
        want = torch.where(cond, side, else_)
        found = k(cond, side, else_, out=out)
        assert torch.equal(found, want) and (out is None or found is out)
    assert then._version > version


def test_kernel_runs_on_the_callers_stream():
    torch = libtorch()
    cond, then, else_ = tensors()
    want = torch.where(cond, then, else_)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        late = torch.zeros_like(then)
        torch.cuda._sleep(50_000_000)
        late.copy_(then)
        out = kernel(W)(cond, late, else_)
    stream.synchronize()
    assert torch.equal(out, want)


def test_graph_replays_the_launch():
    torch = libtorch()
    cond, then, else_ = tensors()
    out = torch.empty_like(then)
    workload = masked_rows(64, 65)
    k, with_scalar = kernel(W), kernel(workload)
    k(cond, then, else_, out=out)
    with_scalar(cond, then, 2.0, out=out)
    graph = torch.cuda.CUDAGraph()
    masked = torch.empty_like(then)
    with torch.cuda.graph(graph):
        k(cond, then, else_, out=out)
        with_scalar(cond, then, 2.0, out=masked)
    then.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(out, torch.where(cond, then, else_))
    assert torch.equal(masked, torch.where(cond, then, 2.0))


def test_code_for_older_generations_runs_by_way_of_ptx():
    arch = int(driver.devices()[0].arch.removeprefix("sm_"))
    if arch < 90:
        skip("needs a device newer than sm_8x")
    k = te_select.compile(W, "cuda:sm_80")
    assert not [r for r in verify_kernel(OnDevice(k), checks=["random"]) if not r.passed]
