"""Import and prune: what is taken, what is refused, and what is dropped."""

import dataclasses
import re

import pytest

import te_select
from te_select.records import log, manage, store
from tests.support.tuning_fakes import BIG, FEW, ROWS, SMALL
from tests.support.tuning_records import V4, change_body, edit, keys, make, of_another_tvm


@pytest.mark.parametrize("shape", [[None], 5, [1.5], [1 << 63]], ids=str)
def test_arguments_that_would_crash_tvm_are_refused(tmp_path, entries, shape):
    store.put(tmp_path / "logs" / V4.name, entries)
    line = change_body(entries[1], lambda body: body[3][0].__setitem__(2, shape))
    edit(tmp_path / "logs" / V4.name, log.RECORDS, lambda lines: lines.__setitem__(1, line))
    (refused,) = manage.merge(tmp_path / "logs", tmp_path / "mine").refused
    assert "w4_1024cte: " in refused and "on its workload" in refused


def test_import_takes_faster_records_of_the_same_tvm(tmp_path, entries):
    source, mine = tmp_path / "source", tmp_path / "mine"
    store.put(source / V4.name, [make(BIG, 2e-3), make(SMALL, 5e-4), make(FEW)])
    store.put(source / "znver5", [of_another_tvm(make(ROWS))])
    store.put(mine / V4.name, entries[:2])
    merged = manage.merge(source, mine)
    assert merged.taken == (f"{V4.name}/w4_1024cte", f"{V4.name}/w4")
    assert merged.kept == (f"{V4.name}/w4_48t_1048576ct",)
    assert len(merged.refused) == 1
    assert "it is of TVM 0.1" in merged.refused[0]
    assert log.read(mine / V4.name).best("w4_1024cte").seconds == 5e-4


def test_only_records_that_beat_the_default_are_copied_if_asked(tmp_path):
    def of(workload, **session):
        made = make(workload, 1e-3)
        return dataclasses.replace(made, session={**made.session, **session})

    source = tmp_path / "source" / V4.name
    won = of(BIG, default_seconds=2e-3)
    unsure = of(ROWS, default_seconds=2e-3, unsure="the rounds lay 80% apart")
    store.put(source, [won, unsure, of(SMALL, default_seconds=1e-3), of(FEW)])
    merged = manage.merge(tmp_path / "source", tmp_path / "mine", better=True)
    assert (merged.taken, merged.refused) == ((f"{V4.name}/{won.key}",), ())
    assert len(manage.merge(tmp_path / "source", tmp_path / "all").taken) == 4


def test_import_replaces_a_faster_record_of_another_tvm(tmp_path):
    store.put(tmp_path / "source" / V4.name, [make(SMALL, 1e-3)])
    store.put(tmp_path / "mine" / V4.name, [of_another_tvm(make(SMALL, 5e-4))])
    merged = manage.merge(tmp_path / "source", tmp_path / "mine")
    assert (merged.taken, merged.kept) == ((f"{V4.name}/w4_1024cte",), ())
    (entry,) = log.read(tmp_path / "mine" / V4.name).entries
    assert entry.seconds == 1e-3


@pytest.mark.parametrize("knob", ["piece", "skip"])
def test_import_survives_a_record_on_which_tvm_aborts(tmp_path, entries, knob):
    """A null instead of a loop."""
    source = tmp_path / "source" / V4.name
    store.put(source, entries)
    lines = (source / log.RECORDS).read_text().splitlines()
    edited = re.sub(rf'\["l\d+",(\d+\],\["te_select\.knob\.{knob})', r"[null,\1", lines[1])
    assert edited != lines[1]
    edit(source, log.RECORDS, lambda lines: lines.__setitem__(1, edited))
    merged = manage.merge(tmp_path / "source", tmp_path / "mine")
    assert merged.taken == tuple(f"{V4.name}/{entry.key}" for entry in (entries[0], entries[2]))
    (refused,) = merged.refused
    assert refused.startswith(f"{V4.name}/w4_1024cte: ")
    assert "on its workload" in refused
    assert manage.prune(tmp_path / "source") == [refused]


@pytest.mark.parametrize("order", [(1e-3, 2e-3), (2e-3, 1e-3)])
def test_import_takes_the_fastest_of_a_pattern(tmp_path, monkeypatch, order):
    listed = manage.Listed("x86-64-v4", tuple(make(SMALL, seconds) for seconds in order), ())
    monkeypatch.setattr(manage, "contents", lambda *_: iter([listed]))
    assert manage.merge(tmp_path, tmp_path / "to").taken == ("x86-64-v4/w4_1024cte",)
    (entry,) = log.read(tmp_path / "to" / "x86-64-v4").entries
    assert entry.seconds == 1e-3


def test_import_of_nothing_is_an_error(tmp_path):
    with pytest.raises(te_select.TuningError, match="is missing"):
        manage.merge(tmp_path / "none", tmp_path)
    with pytest.raises(te_select.TuningError, match="no record of target"):
        manage.merge(tmp_path, tmp_path / "mine")


def test_prune_drops_what_no_compilation_uses(tmp_path, entries):
    folder = tmp_path / V4.name
    store.put(folder, [entries[0], of_another_tvm(entries[1]), entries[2]])
    slower = (folder / log.RECORDS).read_text().splitlines()[0].replace("[0.001", "[0.5", 1)
    edit(folder, log.RECORDS, lambda lines: lines.extend([slower, "torn"]))
    gone = manage.prune(tmp_path)
    assert keys(folder) == [entries[0].key, entries[2].key]
    assert log.read(folder).best(entries[0].key).seconds == 1e-3
    assert len(gone) == 3
    assert manage.prune(tmp_path) == []
