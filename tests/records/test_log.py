"""Reading records: damage costs only its line, and no record gets the workload of another."""

import base64
import itertools
import json
import os
import random

import pytest
from tvm.s_tir import meta_schedule as ms

import te_select
from te_select import Workload
from te_select.records import folders, log, store
from te_select.records.folders import FILES, RECORDS, SESSIONS, WORKLOADS
from te_select.tuning.record import recorded
from tests.support.tuning_fakes import FEW, SMALL
from tests.support.tuning_records import V4, change_body, edit, flat, keys, make

COUNT = 12


def test_best_is_the_fastest_of_a_pattern(tmp_path):
    entries = (make(SMALL, 2e-3), make(SMALL, 1e-3), make(SMALL, 3e-3), make(FEW, 1e-4))
    found = log.Log(tmp_path, entries)
    assert found.best(entries[0].key) == entries[1]
    assert found.best("w4_9cte") is None


@pytest.mark.parametrize(
    "line", ["{", "[1]", "[7,[[[],[]],[1.0],{},[]]]", "[0,[[[],[]],[1.0],{},[]]]"]
)
def test_damaged_record_is_reported_and_the_rest_is_used(tmp_path, entries, line):
    store.put(tmp_path, entries)
    edit(tmp_path, RECORDS, lambda lines: lines.__setitem__(1, line))
    found = log.read(tmp_path)
    assert [entry.key for entry in found.entries] == [entries[0].key, entries[2].key]
    assert [(damage.file, damage.line) for damage in found.damaged] == [(RECORDS, 2)]
    assert found.complaints()[0].startswith(f"{tmp_path / RECORDS} line 2 is left out: ")


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[0][0][-1][2].__setitem__(0, 5),
        lambda body: body[1].__setitem__(0, float("inf")),
        lambda body: body.__setitem__(2, "llvm"),
    ],
)
def test_edited_record_is_reported_with_its_number(tmp_path, entries, change):
    store.put(tmp_path, entries)
    line = change_body(entries[1], change)
    edit(tmp_path, RECORDS, lambda lines: lines.__setitem__(1, line))
    assert [(each.file, each.line) for each in log.read(tmp_path).damaged] == [(RECORDS, 2)]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"default_seconds": value} for value in ("x", {}, float("inf"), 0.0, -1.0, 1)),
        *({name: value} for name in ("trials", "failed") for value in (float("inf"), -1, "x")),
        *({"config": value} for value in (None, {"vector_bytes": [1]}, {"unroll": 1.5})),
        {"machine": 5},
    ],
    ids=str,
)
def test_edited_session_is_reported_and_its_record_serves(tmp_path, entries, wrong):
    store.put(tmp_path, entries)
    session = json.dumps({**entries[1].session, **wrong})
    edit(tmp_path, SESSIONS, lambda lines: lines.__setitem__(1, session))
    found = log.read(tmp_path)
    assert [(damage.file, damage.line) for damage in found.damaged] == [(SESSIONS, 2)]
    assert found.best(entries[1].key).session == {}
    with pytest.warns(RuntimeWarning, match=r"sessions\.json line 2 is left out: "):
        assert recorded(tmp_path, SMALL, entries[1].tvm) is None


def test_damaged_workload_costs_its_own_records_only(tmp_path, entries):
    store.put(tmp_path, entries)
    edit(tmp_path, WORKLOADS, lambda lines: lines.__setitem__(0, '["1", "!"]'))
    found = log.read(tmp_path)
    assert [entry.key for entry in found.entries] == [entry.key for entry in entries[1:]]
    assert {damage.file for damage in found.damaged} == {WORKLOADS, RECORDS}
    store.put(tmp_path, [])
    ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert keys(tmp_path) == [entry.key for entry in entries[1:]]


@pytest.mark.parametrize("data", [b"\x7fELF\x00\xff" * 9, b"{}\n", b"no\nlog\n"])
def test_file_without_a_usable_line_is_no_log(tmp_path, entries, data):
    store.put(tmp_path, entries)
    (tmp_path / RECORDS).write_bytes(data)
    with pytest.raises(te_select.TuningError, match=r"holds no usable line \(line 1: ") as caught:
        log.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_records_serve_without_a_usable_session(tmp_path, entries):
    store.put(tmp_path, entries)
    (tmp_path / SESSIONS).write_bytes(b"\xff\n{}\n")
    found = log.read(tmp_path)
    assert [entry.key for entry in found.entries] == [entry.key for entry in entries]
    assert len(found.damaged) == 2


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("how", ["in place", "another file"])
def test_file_that_was_rewritten_is_read_again(tmp_path, entries, name, how):
    """As many bytes, and in the one case as old."""
    store.put(tmp_path, entries)
    before, path = log.read(tmp_path), tmp_path / name
    first, *rest = path.read_text().splitlines()
    text, stamp = "\n".join([" " * len(first), *rest]) + "\n", path.stat()
    if how == "in place":
        path.write_text(text)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    else:
        (tmp_path / "other").write_text(text)
        os.utime(tmp_path / "other", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        (tmp_path / "other").replace(path)
    assert path.stat().st_size == stamp.st_size
    assert log.read(tmp_path) != before


def test_targets_that_are_json_have_folders_too():
    assert folders.of_target("znver5") == "znver5"
    name = folders.of_target('{"kind": "llvm", "mattr": ["-avx2"]}')
    assert name.startswith("target-")
    assert "/" not in name


def parts(value):
    """Every part of a JSON value, as what holds it and a key or an index."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from parts(value[key])


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *itertools.product([RECORDS, SESSIONS, WORKLOADS], [None, []]),
        *(
            pytest.param(name, other, marks=pytest.mark.slow)
            for name in (RECORDS, SESSIONS)
            for other in (-1, 1.5, "x", {}, 10**30)
        ),
    ],
)
def test_field_of_another_type_costs_its_line_only(tmp_path, entries, name, other):
    store.put(tmp_path, entries)
    data = {each: (tmp_path / each).read_bytes() for each in FILES}
    first, *rest = data[name].decode().splitlines()
    value = json.loads(first)
    for holder, key in list(parts(value)):
        before, holder[key] = holder[key], other
        text = "\n".join([json.dumps(value), *rest]).encode()
        holder[key] = before
        found = log.parse(tmp_path, {**data, name: text})
        assert found.entries[-2:] == tuple(entries[1:])


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b" ",
        lambda data: data.replace(b'"metadata"', b'"atadatem"'),
    ],
)
def test_workload_that_is_cut_or_none_is_damaged(tmp_path, entries, damage):
    store.put(tmp_path, entries)
    digest, encoded = json.loads(entries[0].workload)
    line = json.dumps([digest, base64.b64encode(damage(base64.b64decode(encoded))).decode()])
    edit(tmp_path, WORKLOADS, lambda lines: lines.__setitem__(0, line))
    assert {each.file for each in log.read(tmp_path).damaged} == {WORKLOADS, RECORDS}


# ---- lines that were deleted, moved, doubled or merged


@pytest.fixture(scope="module")
def many():
    """Records of all sizes, and two whose workloads differ only in an axis."""
    axes = [Workload((), (4, 4), (4,), "int8", "pdpd", axis) for axis in (0, 1)]
    return [make(workload) for workload in (*map(flat, range(100, 100 + COUNT)), *axes)]


@pytest.fixture
def folder(tmp_path, many):
    made = tmp_path / "logs" / V4.name
    store.put(made, many)
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
    "a line twice": lambda lines: lines.insert(2, lines[1]),
    "a merge conflict": conflict,
    "the workloads of an axis each in the other's place": lambda lines: lines.append(lines.pop(-2)),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("change", EDITS)
def test_no_record_gets_the_workload_of_another(folder, many, name, change):
    """What its session says finds it, wherever its line has gone; a write mends the rest."""
    edit(folder, name, EDITS[change])
    own = {entry.body: entry.workload for entry in many}
    there = [own[entry.body] for entry in log.read(folder).entries]
    assert there == [entry.workload for entry in log.read(folder).entries]
    lost = len(many) - len(set(there))
    assert lost <= ("deleted" in change)
    store.put(folder, [make(flat(7))])
    assert "w4_7cte" in keys(folder)
    assert log.read(folder).damaged == ()
    assert len(log.read(folder).entries) >= len(many) - lost
    database = ms.database.JSONDatabase(work_dir=str(folder)).get_all_tuning_records()
    assert len(database) == len(log.read(folder).entries)


def test_last_of_several_sessions_tells_of_a_record(folder, many):
    """A merge of two branches may leave both."""
    later = json.dumps({**many[1].session, "trials": 77})
    edit(folder, SESSIONS, lambda lines: lines.append(later))
    best = log.read(folder).best(many[1].key)
    assert best is not None and best.session["trials"] == 77


def test_time_of_several_runs_is_their_mean(folder, many):
    """MetaSchedule keeps the seconds of each run."""
    line = change_body(many[0], lambda body: body.__setitem__(1, [1e-3, 5e-3, 3e-3]))
    edit(folder, RECORDS, lambda lines: lines.__setitem__(0, line.replace("[1,", "[0,", 1)))
    assert log.read(folder).entries[0].seconds == pytest.approx(3e-3)
