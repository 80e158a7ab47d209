"""Tests of the peers that do more than call a function: oneDNN and MetaSchedule."""

from __future__ import annotations

import logging
import os
import sys
from importlib import metadata

import pytest

from te_select.bench.peers import MetaSchedule, OneDnn, Peer, UnsupportedError, onednn
from te_select.checking.reference import first_difference, placed
from te_select.operator.workload import Workload
from te_select.timing.operands import Mask, make_operands


def difference(peer: Peer, workload: Workload) -> str:
    operands = make_operands(workload, Mask())
    operands.out.reshape(-1).view("u1")[...] = 0xA5
    (call,) = peer.prepare(workload, [operands])
    call()
    return first_difference(
        operands.out, *placed(workload, operands.cond, operands.then, operands.else_)
    )


@pytest.fixture
def dnnl() -> OneDnn:
    peer = OneDnn()
    if (reason := peer.available()) is not None:
        pytest.skip(reason)
    return peer


@pytest.fixture
def tuned() -> MetaSchedule:
    peer = MetaSchedule(trials=2)
    if (reason := peer.available()) is not None:
        pytest.skip(reason)
    return peer


@pytest.mark.parametrize("dtype", sorted(onednn.TYPES))
@pytest.mark.parametrize(
    "shapes",
    [
        ((70_001,), (70_001,), (70_001,)),
        ((9, 70), (9, 70), ()),
        ((9, 70), (9, 70), (70,)),
        ((9, 1), (9, 70), (9, 70)),
        ((1, 70), (9, 1), (70,)),
        ((), (), ()),
    ],
)
def test_onednn_keeps_bits_of_its_types_in_every_broadcast(dnnl, dtype, shapes) -> None:
    assert difference(dnnl, Workload(*shapes, dtype)) == ""


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        (Workload((4,), (4,), (4,), "float64"), "keeps the bits of float64"),
        (Workload((1, 40_000), (2, 40_000), ()), "only its reference implementation"),
    ],
)
def test_onednn_says_what_it_does_not_run(dnnl, workload, reason) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        dnnl.prepare(workload, [make_operands(workload, Mask())])


def test_status_of_onednn_is_told(dnnl) -> None:
    with pytest.raises(UnsupportedError, match="dnnl_engine_create says invalid_arguments"):
        onednn._machine().make("engine", 1, 10_000)


def test_missing_onednn_is_absent_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    onednn._machine.cache_clear()
    try:
        reason = OneDnn().available()
    finally:
        onednn._machine.cache_clear()
    assert reason == "No package metadata was found for onednn; pip install onednn"


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float64"])
def test_tuned_schedules_select(tuned, dtype) -> None:
    assert difference(tuned, Workload((40, 1, 512), (40, 6, 1), (6, 512), dtype)) == ""


def test_tuning_leaves_process_as_it_was(tuned, capfd, caplog) -> None:
    allowed = os.sched_getaffinity(0)
    with caplog.at_level(logging.WARNING):
        assert difference(tuned, Workload((1 << 17,), (1 << 17,), ())) == ""
    assert os.sched_getaffinity(0) == allowed
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    intrinsics = "tvm.s_tir.tensor_intrin"
    assert not hasattr(sys.modules[intrinsics], "cuda") or f"{intrinsics}.cuda" in sys.modules


def test_schedules_that_do_not_compile_are_told(tuned, monkeypatch: pytest.MonkeyPatch) -> None:
    import tvm

    def refuse(*_args: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(tvm, "compile", refuse)
    workload = Workload((64,), (64,), (64,))
    with pytest.raises(UnsupportedError, match="none of the schedules"):
        tuned.prepare(workload, [make_operands(workload, Mask())])
