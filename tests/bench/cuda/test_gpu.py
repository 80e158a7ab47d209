"""The bench on a real CUDA device: its peers and its graphs. Skipped if there is none."""

import tvm_ffi
from pytest import mark, skip

import te_select
from te_select import Workload
from te_select.bench.cuda.device_sets import make_sets, poison, result
from te_select.bench.cuda.peers import PEERS
from te_select.bench.stage import difference
from te_select.runtime.call.cuda import driver
from te_select.timing.cuda.clocks import Graph, replayed
from te_select.timing.inputs import Mask, make_operands

pytestmark = mark.gpu

W = Workload((4, 1, 65), (4, 3, 65), (65,))


def sets_of(workload, count):
    return make_sets(make_operands(workload, Mask()), count)


@mark.parametrize("dtype", ["float32", "bfloat16"])
@mark.parametrize("kind", PEERS, ids=lambda kind: kind.name)
def test_peers_select_the_same_bits_from_every_set(kind, dtype):
    peer = kind()
    if why := peer.available():
        skip(why)
    workload = Workload(W.cond_shape, W.then_shape, W.else_shape, dtype)
    sets = sets_of(workload, 2)
    for call, operands in zip(peer.prepare(workload, sets), sets, strict=True):
        poison(operands, 0xA5)
        value = call()
        driver.synchronize(0)
        assert difference(peer.result(value, operands), operands) == ""


def test_calls_are_captured_and_their_replay_computes():
    kernel = te_select.compile(W, "cuda")
    (operands,) = sets_of(W, 1)
    cond, then, else_, out = map(tvm_ffi.from_dlpack, operands.arrays())
    sampler = replayed(lambda: kernel(cond, then, else_, out=out))
    assert isinstance(sampler, Graph)
    poison(operands, 0xA5)
    assert sampler.sample() > 0
    driver.synchronize(0)
    assert difference(result(operands), operands) == ""
