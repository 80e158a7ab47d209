"""Tuning logs: damage costs only its line, and a killed writer loses nothing."""

import base64
import dataclasses
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from tvm.s_tir import meta_schedule as ms

import te_select
from te_select import Workload
from te_select.records import log, snapshot, store
from te_select.runtime.artifact import atomic
from te_select.tuning.record import recorded
from tests.support.tuning_fakes import FEW, SMALL
from tests.support.tuning_records import change_body, edit, keys, make


def test_best_is_the_fastest_of_a_pattern(tmp_path):
    entries = (make(SMALL, 2e-3), make(SMALL, 1e-3), make(SMALL, 3e-3), make(FEW, 1e-4))
    found = log.Log(tmp_path, entries, (), ())
    assert found.best(entries[0].key) == entries[1]
    assert found.best("w4_9cte") is None


def test_records_keep_their_order_so_that_diffs_read_well(tmp_path, entries):
    store.put(tmp_path, entries)
    before = (tmp_path / log.RECORDS).read_text().splitlines()
    store.put(tmp_path, [make(SMALL, 2e-3), make(FEW)])
    after = (tmp_path / log.RECORDS).read_text().splitlines()
    assert [after[0], after[2]] == [before[0], before[2]]
    assert keys(tmp_path) == [*(entry.key for entry in entries), make(FEW).key]
    assert log.read(tmp_path).best(entries[1].key).seconds == 2e-3


def test_what_is_read_is_what_was_written(tmp_path, entries):
    store.put(tmp_path, entries)
    assert list(log.read(tmp_path).entries) == entries


def test_another_broadcast_of_a_kernel_replaces_its_record(tmp_path):
    store.put(tmp_path, [make(SMALL), make(Workload((4, 256), (4, 256), (4, 256)))])
    assert keys(tmp_path) == ["w4_1024cte"]
    assert len((tmp_path / log.WORKLOADS).read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "line", ["{", "[1]", "[7,[[[],[]],[1.0],{},[]]]", "[0,[[[],[]],[1.0],{},[]]]"]
)
def test_damaged_record_is_reported_and_the_rest_is_used(tmp_path, entries, line):
    store.put(tmp_path, entries)
    edit(tmp_path, log.RECORDS, lambda lines: lines.__setitem__(1, line))
    found = log.read(tmp_path)
    assert [entry.key for entry in found.entries] == [entries[0].key, entries[2].key]
    assert [(damage.file, damage.line) for damage in found.damaged] == [(log.RECORDS, 2)]
    assert found.complaints()[0].startswith(f"{tmp_path / log.RECORDS} line 2 is left out: ")


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.__setitem__(3, None),
        lambda body: body[3].__setitem__(0, None),
        lambda body: body[3][0].__setitem__(1, None),
        lambda body: body[0][0][-1][2].__setitem__(0, 5),
        lambda body: body[1].__setitem__(0, float("inf")),
    ],
)
def test_edited_record_is_reported_with_its_number(tmp_path, entries, change):
    store.put(tmp_path, entries)
    line = change_body(entries[1], change)
    edit(tmp_path, log.RECORDS, lambda lines: lines.__setitem__(1, line))
    found = log.read(tmp_path)
    assert [(damage.file, damage.line) for damage in found.damaged] == [(log.RECORDS, 2)]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"default_seconds": value} for value in ("x", {}, float("inf"), 0.0, -1.0, 1)),
        *({name: value} for name in ("trials", "failed") for value in (float("inf"), -1, "x")),
        *({"config": {"vector_bytes": value}} for value in (None, [1], float("inf"))),
        {"config": None},
        {"machine": 5},
    ],
    ids=str,
)
def test_edited_session_is_reported_and_its_record_serves(tmp_path, entries, wrong):
    store.put(tmp_path, entries)
    session = json.dumps({**entries[1].session, **wrong})
    edit(tmp_path, log.SESSIONS, lambda lines: lines.__setitem__(1, session))
    found = log.read(tmp_path)
    assert [(damage.file, damage.line) for damage in found.damaged] == [(log.SESSIONS, 2)]
    assert found.best(entries[1].key).session == {}
    with pytest.warns(RuntimeWarning, match=r"sessions\.json line 2 is left out: "):
        assert recorded(tmp_path, SMALL, entries[1].tvm) is None


def test_damaged_line_is_set_aside_by_the_next_write(tmp_path, entries):
    store.put(tmp_path, entries)
    edit(tmp_path, log.RECORDS, lambda lines: lines.__setitem__(1, lines[1][:70]))
    store.put(tmp_path, [make(FEW)])
    assert log.read(tmp_path).damaged == ()
    assert keys(tmp_path) == [entries[0].key, entries[2].key, make(FEW).key]
    assert entries[1].body[:60] in (tmp_path / store.ASIDE).read_text()
    ms.database.JSONDatabase(work_dir=str(tmp_path))


def test_damaged_workload_costs_its_own_records_only(tmp_path, entries):
    store.put(tmp_path, entries)
    edit(tmp_path, log.WORKLOADS, lambda lines: lines.__setitem__(0, '["1", "!"]'))
    found = log.read(tmp_path)
    assert [entry.key for entry in found.entries] == [entry.key for entry in entries[1:]]
    assert {damage.file for damage in found.damaged} == {log.WORKLOADS, log.RECORDS}
    store.put(tmp_path, [])
    ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert keys(tmp_path) == [entry.key for entry in entries[1:]]


def test_truncated_file_loses_its_last_line_only(tmp_path, entries):
    store.put(tmp_path, entries)
    path = tmp_path / log.RECORDS
    path.write_bytes(path.read_bytes()[:-30])
    assert keys(tmp_path) == [entry.key for entry in entries[:2]]


@pytest.mark.parametrize("data", [b"\x7fELF\x00\xff" * 9, b"{}\n", b"no\nlog\n"])
def test_file_without_a_usable_line_is_no_log(tmp_path, entries, data):
    store.put(tmp_path, entries)
    (tmp_path / log.RECORDS).write_bytes(data)
    with pytest.raises(te_select.TuningError, match=r"holds no usable line \(line 1: ") as caught:
        log.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_records_serve_without_a_usable_session(tmp_path, entries):
    store.put(tmp_path, entries)
    (tmp_path / log.SESSIONS).write_bytes(b"\xff\n{}\n")
    found = log.read(tmp_path)
    assert [entry.key for entry in found.entries] == [entry.key for entry in entries]
    assert len(found.damaged) == 2


def test_folder_in_the_place_of_a_file_is_refused(tmp_path):
    (tmp_path / log.RECORDS).mkdir()
    with pytest.raises(te_select.TuningError, match="not a regular file"):
        log.read(tmp_path)


FILES = (log.PENDING, log.WORKLOADS, log.RECORDS, log.SESSIONS)


class Died(BaseException):
    """Raised instead of the death of a process."""


@pytest.mark.parametrize("written", range(len(FILES) + 1))
def test_cut_write_leaves_the_old_logs_or_the_new(tmp_path, entries, monkeypatch, written):
    """After each of its files, and before the pending one is removed."""
    store.put(tmp_path, entries)
    left = list(FILES[:written])
    unlink = Path.unlink

    def replace(path, data):
        if not left:
            raise Died
        assert path.name == left.pop(0)
        atomic.replace(path, data)

    def remove(path, **options):
        if path.name == log.PENDING:
            raise Died
        unlink(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(store, "atomic", SimpleNamespace(replace=replace))
        patched.setattr(Path, "unlink", remove)
        with pytest.raises(Died):
            store.drop(tmp_path, entries[:2])
    assert list(log.read(tmp_path).entries) == (entries[2:] if written else entries)
    assert (tmp_path / log.PENDING).exists() == (written > 0)
    store.put(tmp_path, [make(FEW)])
    assert not (tmp_path / log.PENDING).exists()
    assert keys(tmp_path)[-2:] == [entries[2].key, make(FEW).key]
    assert len(keys(tmp_path)) == (2 if written else 4)
    ms.database.JSONDatabase(work_dir=str(tmp_path))


@pytest.mark.parametrize("name", [log.WORKLOADS, log.RECORDS, log.SESSIONS])
def test_file_that_was_rewritten_in_place_is_read_again(tmp_path, entries, name):
    store.put(tmp_path, entries)
    before = log.read(tmp_path)
    path = tmp_path / name
    lines = path.read_text().splitlines()
    stamp = path.stat()
    path.write_text("".join(f"{line}\n" for line in (" " * len(lines[0]), *lines[1:])))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    after = path.stat()
    assert (after.st_size, after.st_ino) == (stamp.st_size, stamp.st_ino)
    assert log.read(tmp_path) != before


def test_writers_at_once_lose_nothing(tmp_path):
    made = [make(Workload((n,), (n,), (n,))) for n in range(100, 124)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda entry: store.put(tmp_path, [entry]), made))
    assert sorted(keys(tmp_path)) == sorted(entry.key for entry in made)
    ms.database.JSONDatabase(work_dir=str(tmp_path))


def test_killed_writer_leaves_every_trial_it_reported(tmp_path, entries):
    source = tmp_path / "source"
    store.put(source, entries)
    script = textwrap.dedent(f"""
        import itertools
        from pathlib import Path
        from te_select.records import log, store
        from te_select.tuning.journal import Journal, Trial
        entries = log.read(Path({str(source)!r})).entries
        folder = Path({str(tmp_path / "t")!r})
        journal = Journal(folder, "w4_1c", {{}})
        with store.locked(journal.folder):
            start = len(journal.read())
        for i in itertools.count(start):
            journal.append(Trial({{"piece": i}}, 1e-3))
            print(i, flush=True)
            # Each write moves the others' lines.
            store.drop(folder, [entries[i % 3]])
            store.put(folder, [entries[i % 3]])
    """)
    from te_select.tuning.journal import Journal

    chance = random.Random(0)
    reported = -1
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
            for _ in range(chance.randrange(1, 6)):
                reported = int(child.stdout.readline())
            for _ in range(chance.randrange(20_000)):
                pass
            os.kill(child.pid, signal.SIGKILL)
            rest = child.stdout.read().split()
            reported = int(rest[-1]) if rest else reported
        trials = Journal(tmp_path / "t", "w4_1c", {}).read()
        assert {dict(key)["piece"] for key in trials} >= set(range(reported + 1))
        assert set(keys(tmp_path / "t")) <= {entry.key for entry in entries}
        assert log.read(tmp_path / "t").damaged == ()
    store.put(tmp_path / "t", entries)
    assert len(ms.database.JSONDatabase(work_dir=str(tmp_path / "t")).get_all_tuning_records()) == 3


def test_targets_that_are_json_have_folders_too():
    assert log.folder_name("znver5") == "znver5"
    name = log.folder_name('{"kind": "llvm", "mattr": ["-avx2"]}')
    assert name.startswith("target-")
    assert "/" not in name


def parts(value):
    """Every part of a JSON value, as what holds it and a key or an index."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from parts(value[key])


def graph_of(line):
    """The graph in a workload's line, and a function that makes the line of another."""
    digest, encoded = json.loads(line)

    def again(graph):
        data = json.dumps(graph).encode()
        framed = len(data).to_bytes(8, "little") + data
        return json.dumps([digest, base64.b64encode(framed).decode()])

    return json.loads(base64.b64decode(encoded)[8:]), again


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *itertools.product([log.RECORDS, log.SESSIONS], [None, []]),
        *(
            pytest.param(name, other, marks=pytest.mark.slow)
            for name in (log.RECORDS, log.SESSIONS)
            for other in (-1, 1.5, "x", {}, 10**30)
        ),
        # Of thousands of fields.
        *(pytest.param(log.WORKLOADS, other, marks=pytest.mark.slow) for other in (None, {})),
    ],
)
def test_field_of_another_type_costs_its_line_only(tmp_path, entries, name, other):
    store.put(tmp_path, entries)
    taken = snapshot.take(tmp_path)
    first, *rest = taken.data[name].decode().splitlines()
    value, again = graph_of(first) if name == log.WORKLOADS else (json.loads(first), json.dumps)
    for holder, key in list(parts(value)):
        before, holder[key] = holder[key], other
        text = "\n".join([again(value), *rest]).encode()
        holder[key] = before
        changed = dataclasses.replace(taken, data={**taken.data, name: text})
        found = log.parse(tmp_path, changed)
        assert found.entries[-2:] == tuple(entries[1:])
