"""The peers: each gives NumPy's result, or says why it cannot."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor
from sys import modules
from unittest.mock import Mock

import numpy as np
from pytest import fixture, mark, param, raises, skip

from te_select import Workload
from te_select.bench.peers import PEERS, MetaSchedule, choose_peers, kernels, metaschedule
from te_select.bench.peers.base import UnsupportedError
from te_select.operator.access import access_pattern
from te_select.timing.inputs import Mask, make_operands
from te_select.verify.reference import first_difference, placed
from tests.support import alike, flat, flat_and_scalar, shapes
from tests.support import strategies as s

WORKLOADS = {
    "broadcast": Workload(*shapes("33,1,40 33,6,1 6,40")),
    "run": flat(70_001),
    "one element": alike(),
    "bfloat16": Workload(*shapes("64,1 64,3 64,3"), "bfloat16"),
    "uint8": Workload(*shapes("64,1 64,3 ()"), "uint8"),
    "complex128": Workload(*shapes("9,7 9,7 7"), "complex128"),
    "pdpd": Workload(*shapes("3 2,3,4 3,1"), "float32", "pdpd", 1),
}
UNSUPPORTED = {
    "halide": {"one element": "the pipeline has no loop"},
    "topi.where": {"complex128": "has no elements of 16 bytes"},
    "tvm-metaschedule": {"complex128": "has no elements of 16 bytes"},
}
"""Which of the workloads a peer cannot run, and its reason."""


def differences(peer, workload, count=1):
    """How a peer's result on each of some sets of operands differs from NumPy's."""
    sets = [make_operands(workload, Mask(), seed) for seed in range(count)]
    for operands in sets:
        operands.out.reshape(-1).view("u1")[...] = 0xA5
    found = []
    for operands, call in zip(sets, peer.prepare(workload, sets), strict=True):
        out = peer.result(call(), operands)
        assert out.dtype == operands.out.dtype
        want = s.expected(workload, operands.cond, operands.then, operands.else_)
        views = placed(workload, operands.cond, operands.then, operands.else_)
        found.append(first_difference(out, *views))
        assert np.array_equal(s.as_bytes(out), want) == (found[-1] == "")
    return found


@fixture(scope="module")
def intrinsics():
    """Import what MetaSchedule needs in a thread of its own.

    TVM looks at the whole stack for each of them, and pytest's made that take 30 s.
    """
    with ThreadPoolExecutor(1) as alone:
        alone.submit(metaschedule._import_intrinsics).result()


@fixture
def tuned(intrinsics):
    peer = MetaSchedule(trials=2)
    if (reason := peer.available()) is not None:
        skip(reason)
    return peer


# Compiling with Inductor starts worker processes, for 20 s. MetaSchedule takes as long.
@mark.parametrize(
    "peer",
    [
        param(peer, marks=[mark.slow] if peer.name == "tvm-metaschedule" else [])
        for peer in PEERS
        if peer.name != "torch.compile"
    ],
    ids=lambda peer: peer.name,
)
@mark.filterwarnings("ignore")
def test_a_peer_selects_into_each_set_or_says_why_not(peer, request):
    made = request.getfixturevalue("tuned") if peer is MetaSchedule else peer()
    if (reason := made.available()) is not None:
        skip(reason)
    for name, workload in WORKLOADS.items():
        if (why := UNSUPPORTED.get(peer.name, {}).get(name)) is None:
            assert differences(made, workload, 2) == ["", ""], name
        else:
            with raises(Exception, match=why):
                differences(made, workload, 2)


def test_peers_are_chosen_by_name():
    assert [peer.name for peer in choose_peers("torch, numpy")] == ["numpy", "torch"]
    assert choose_peers("none") == []
    assert len(choose_peers("all")) == len(PEERS)
    with raises(ValueError, match=r"'x'.; expected all, none or numpy"):
        choose_peers("numpy,x")


def test_torch_has_as_many_threads_as_others(monkeypatch):
    torch = Mock()
    monkeypatch.setattr("te_select.bench.peers.libraries.load", lambda _: torch)
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "3")
    choose_peers("torch")[0].prepare(flat(9), [])
    torch.set_num_threads.assert_called_once_with(3)


@mark.slow
def test_tuning_leaves_process_as_it_was(tuned, capfd, caplog):
    allowed = os.sched_getaffinity(0)
    with caplog.at_level(logging.WARNING):
        assert differences(tuned, flat_and_scalar(1 << 17)) == [""]
    assert os.sched_getaffinity(0) == allowed
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    intrinsics = "tvm.s_tir.tensor_intrin"
    assert not hasattr(modules[intrinsics], "cuda") or f"{intrinsics}.cuda" in modules


@mark.slow
def test_schedules_that_do_not_compile_are_told(tuned, monkeypatch):
    import tvm

    monkeypatch.setattr(tvm, "compile", None)
    workload = flat(64)
    with raises(UnsupportedError, match="none of the schedules"):
        tuned.prepare(workload, [make_operands(workload, Mask())])


def test_merged_operands_have_an_axis_per_loop_they_move():
    workload = Workload(*shapes("2,1,3 2,5,3 5,1"), "complex128")
    pattern = access_pattern(workload)
    arrays = [*kernels._merged(make_operands(workload, Mask()), pattern)]
    assert [loop.movers for loop in pattern.loops] == ["ct", "te", "ct", "te"]
    assert [array.shape for array in arrays] == [(2, 3), (2, 5, 3, 2), (5, 2), (2, 5, 3, 2)]
    assert [array.dtype.itemsize for array in arrays] == [1, 8, 8, 8]
