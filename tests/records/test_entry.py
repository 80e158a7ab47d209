"""Records and the workloads that they name, after lines were deleted, moved, doubled or merged."""

import json
import random

import pytest

import te_select
from te_select import Workload
from te_select.records import log, snapshot, store
from tests.support.tuning_records import V4, change_body, edit, flat, keys, make

COUNT = 12


@pytest.fixture(scope="module")
def entries():
    """Records of all sizes, and two whose workloads differ only in an axis."""
    axes = [Workload((), (4, 4), (4,), "int8", "pdpd", axis) for axis in (0, 1)]
    return [make(workload) for workload in (*map(flat, range(100, 100 + COUNT)), *axes)]


@pytest.fixture
def folder(tmp_path, entries):
    made = tmp_path / "logs" / V4.name
    store.put(made, entries)
    return made


def conflict(lines):
    """The markers that git leaves if two branches have changed the same lines."""
    middle = len(lines) // 2
    lines[middle:middle] = ["<<<<<<< HEAD"]
    lines.insert(middle + 3, "=======")
    lines.insert(middle + 6, ">>>>>>> tuned-elsewhere")


EDITS = {
    "a deleted line": lambda lines: lines.pop(0),
    "a deleted line in the middle": lambda lines: lines.pop(COUNT // 2),
    "two that changed places": lambda lines: lines.insert(0, lines.pop(3)),
    "a shuffle": lambda lines: random.Random(1).shuffle(lines),
    "sorting": lambda lines: lines.sort(),
    "a line twice": lambda lines: lines.insert(2, lines[1]),
    "a merge conflict": conflict,
    "the workloads of an axis each in the other's place": lambda lines: lines.append(lines.pop(-2)),
}


@pytest.mark.parametrize("name", [log.WORKLOADS, log.RECORDS])
@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_no_record_gets_the_workload_of_another(folder, entries, name, change):
    edit(folder, name, change)
    try:
        found = log.read(folder)
    except te_select.TuningError as error:
        assert "holds no usable line" in str(error)
        return
    assert_none_is_paired_anew(found.entries, entries)
    there = {line.partition(",")[2][:-1] for line in (folder / log.RECORDS).read_text().split("\n")}
    lost = {entry.body for entry in entries} & there - {entry.body for entry in found.entries}
    assert lost <= {damage.text.partition(",")[2][:-1] for damage in found.damaged}
    if name == log.RECORDS:  # a record has the number of its workload with it
        assert not lost


@pytest.mark.parametrize("name", [log.WORKLOADS, log.RECORDS, log.SESSIONS])
@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_nothing_is_dropped_when_the_files_are_written_back(folder, entries, name, change):
    edit(folder, name, change)
    before = lines_in(folder)
    try:
        store.put(folder, [make(flat(7))])
    except te_select.TuningError as error:
        assert "holds no usable line" in str(error)
        assert lines_in(folder) == before
        return
    assert before <= lines_in(folder)
    assert "w4_7cte" in keys(folder)
    assert log.read(folder).damaged == log.read(folder).unused == ()
    assert_none_is_paired_anew(log.read(folder).entries, entries)


def test_workload_of_one_pattern_and_other_shapes_is_another(tmp_path):
    """It is the same kernel, but the trace of the record has other loops."""
    flat, square = make(Workload((16,), (16,), (16,))), make(Workload((4, 4), (4, 4), (4, 4)))
    assert flat.key == square.key
    store.put(tmp_path, [flat, make(Workload((), (), ()))])
    edit(tmp_path, log.WORKLOADS, lambda lines: lines.__setitem__(0, square.workload))
    assert keys(tmp_path) == ["w4"]
    (damage,) = log.read(tmp_path).damaged
    assert "is of other shapes: lines were moved or deleted" in damage.reason


def test_complaint_names_both_patterns(folder):
    edit(folder, log.WORKLOADS, lambda lines: lines.pop(1))
    complaint = log.read(folder).complaints()[0]
    assert complaint.endswith(
        "line 2 is left out: it is of w4_101cte, but line 2 of the workloads, which it names, is "
        "of w4_102cte: lines were moved or deleted"
    )


def assert_none_is_paired_anew(found, entries):
    own = {entry.body: entry.workload for entry in entries}
    assert all(entry.workload == own.get(entry.body, entry.workload) for entry in found)


def lines_in(folder):
    """Every line of the logs and of what was set aside; a record without the workload's number."""
    lines = set()
    for name in (*snapshot.FILES, store.ASIDE):
        if (folder / name).exists():
            lines |= set((folder / name).read_text().splitlines())
    return {
        line.partition(",")[2] if line.startswith("[") and line[1].isdigit() else line
        for line in lines
    }


def test_last_of_several_sessions_tells_of_a_record(folder, entries):
    """A merge of two branches may leave both."""
    later = json.dumps({**entries[1].session, "trials": 77})
    edit(folder, log.SESSIONS, lambda lines: lines.append(later))
    best = log.read(folder).best(entries[1].key)
    assert best is not None and best.session["trials"] == 77


def test_time_of_several_runs_is_their_mean(folder, entries):
    """MetaSchedule keeps the seconds of each run."""
    line = change_body(entries[0], lambda body: body.__setitem__(1, [1e-3, 5e-3, 3e-3]))
    edit(folder, log.RECORDS, lambda lines: lines.__setitem__(0, line.replace("[1,", "[0,", 1)))
    assert log.read(folder).entries[0].seconds == pytest.approx(3e-3)
