"""The record of a workload in the logs, as a session finds it."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from te_select.operator.access import access_pattern
from te_select.records import log, metaschedule
from te_select.records.log import Entry
from te_select.schedules.cpu import schedule as cpu
from te_select.tuning.record import recorded
from tests.support.tuning_fakes import FEW, SMALL
from tests.support.tuning_records import V4

FOUND = {"default_seconds": 9e-3, "trials": 7, "failed": 2, "busy_cores": 0.25, "spread": 0.125}


def entry(seconds: float, unroll: int) -> Entry:
    config = replace(cpu.default_config(access_pattern(SMALL), V4.tvm), unroll=unroll)
    session = {**FOUND, "config": asdict(config)}
    return metaschedule.entry(SMALL, V4, config, seconds, session)


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    """Records of one workload: a slow one, a fast one, and one of another TVM that is faster."""
    return [entry(2e-3, 2), entry(1e-3, 8), replace(entry(1e-4, 1), tvm="0.1")]


@pytest.fixture
def folder(entries: list[Entry], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    read = log.Log(tmp_path / "x86-64-v4", tuple(entries))
    monkeypatch.setattr(log, "read", lambda _folder: read)
    return read.folder


def test_fastest_of_several_records_of_a_workload_is_its_record(entries, folder):
    found = recorded(folder, SMALL, entries[0].tvm)
    assert found is not None
    assert (found.seconds, found.config["unroll"]) == (1e-3, 8)
    said = (found.default_seconds, found.trials, found.failed, found.busy_cores, found.spread)
    assert said == tuple(FOUND.values())
    assert found.name == "x86-64-v4/w4_1024cte"


def test_record_of_another_tvm_or_workload_is_none(folder):
    other = recorded(folder, SMALL, "0.1")
    assert other is not None
    assert other.seconds == 1e-4
    assert recorded(folder, SMALL, "0.2") is None
    assert recorded(folder, FEW, "0.1") is None


def test_record_that_says_nothing_of_its_session_is_none(entries, folder, monkeypatch):
    bare = replace(entries[1], session={})
    monkeypatch.setattr(log, "read", lambda _folder: log.Log(folder, (bare,)))
    assert recorded(folder, SMALL, bare.tvm) is None
