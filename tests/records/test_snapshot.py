"""Writes that were cut short are read and finished, but never overwrite somebody's changes."""

import json
import os
import subprocess
import sys
import textwrap
import threading

import pytest
from tvm.s_tir import meta_schedule as ms

import te_select
from te_select.records import log, snapshot, store
from tests.support.tuning_fakes import FEW
from tests.support.tuning_records import V4, edit, flat, keys, make

REPLACED = (snapshot.PENDING, *snapshot.FILES)
KILLED_WRITER = """
    import os, signal, sys
    from pathlib import Path
    from te_select.records import log, store
    folder, source, survived = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    replace, unlink = store.atomic.replace, Path.unlink

    def die_after(path, data):
        global survived
        if not survived:
            os.kill(os.getpid(), signal.SIGKILL)
        survived -= 1
        replace(path, data)

    def die_at(path, **how):
        if path.name == log.PENDING:
            os.kill(os.getpid(), signal.SIGKILL)
        unlink(path, **how)

    store.atomic.replace, Path.unlink = die_after, die_at
    store.put(folder, log.read(source).entries)
"""


@pytest.fixture(scope="module")
def old():
    return [make(flat(n)) for n in (100, 101, 102)]


@pytest.fixture(scope="module")
def new():
    """A new record that comes first, one with another time, and one unchanged."""
    return [make(flat(99)), make(flat(101), 2e-3)]


@pytest.fixture
def cut_short(tmp_path, old, new):
    """Logs whose writer was killed after it had replaced some files."""

    def make_it(survived):
        store.put(tmp_path / "source", new)
        store.put(tmp_path / "t", old)
        before = {name: (tmp_path / "t" / name).read_bytes() for name in snapshot.FILES}
        words = [sys.executable, "-c", textwrap.dedent(KILLED_WRITER)]
        done = subprocess.run(
            [*words, str(tmp_path / "t"), str(tmp_path / "source"), str(survived)], check=False
        )
        assert done.returncode == -9
        after = {name: (tmp_path / "t" / name).read_bytes() for name in snapshot.FILES}
        replaced = [name for name in snapshot.FILES if after[name] != before[name]]
        assert replaced == [*snapshot.FILES[: max(survived - 1, 0)]]
        assert (tmp_path / "t" / snapshot.PENDING).exists() == (survived > 0)
        return tmp_path / "t"

    return make_it


def times(folder):
    return {entry.key: entry.seconds for entry in log.read(folder).entries}


OLD = {"w4_100cte": 1e-3, "w4_101cte": 1e-3, "w4_102cte": 1e-3}
NEW = {**OLD, "w4_101cte": 2e-3, "w4_99cte": 1e-3}


@pytest.mark.parametrize("survived", range(len(REPLACED) + 1), ids=["nothing", *REPLACED])
def test_killed_write_leaves_the_old_logs_or_the_new(cut_short, survived):
    folder = cut_short(survived)
    assert times(folder) == (NEW if survived else OLD)
    assert log.read(folder).damaged == ()
    store.put(folder, [make(FEW)])
    assert times(folder) == {**(NEW if survived else OLD), "w4": 1e-3}
    assert log.read(folder).damaged == ()
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".l")}
    assert names == set(snapshot.FILES)
    ms.database.JSONDatabase(work_dir=str(folder))


def test_pending_write_does_not_undo_what_came_after_it(cut_short, tmp_path, new):
    folder = cut_short(2)
    overtaken = (folder / snapshot.PENDING).read_bytes()
    store.put(folder, [make(flat(n)) for n in range(200, 219)])
    (folder / snapshot.PENDING).write_bytes(overtaken)
    expected = set(NEW) | {f"w4_{n}cte" for n in range(200, 219)}
    assert set(keys(folder)) == expected
    (complaint,) = log.read(folder).complaints()
    assert complaint.startswith(f"{folder / snapshot.PENDING} line 1 is left out: ")
    assert "changed since" in complaint
    store.put(folder, [make(FEW)])
    assert set(keys(folder)) == {*expected, "w4"}
    assert not (folder / snapshot.PENDING).exists()
    assert overtaken.decode() in (folder / store.ASIDE).read_text()


@pytest.mark.parametrize("name", snapshot.FILES)
def test_pending_write_does_not_undo_an_edit_by_hand(cut_short, name):
    folder = cut_short(1)
    edit(folder, name, lambda lines: lines.append(""))
    assert times(folder) == OLD
    assert len(log.read(folder).damaged) == 1


@pytest.mark.parametrize("name", snapshot.FILES)
def test_pending_write_of_files_that_have_gone_does_not_count(cut_short, name):
    folder = cut_short(1)
    for gone in snapshot.FILES:
        (folder / gone).unlink()
    assert keys(folder) == []
    assert len(log.read(folder).damaged) == 1


def without(part, name):
    def change(text):
        read = json.loads(text)
        del read[part][name]
        return json.dumps(read)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "",
        lambda text: "{}",
        lambda text: "[]",
        lambda text: "null",
        lambda text: text[:-10],
        lambda text: "[" * 100_000,
        lambda text: text.replace('"texts": {', '"texts": {"x": ', 1),
        lambda text: json.dumps({**json.loads(text), "texts": {"sessions.json": None}}),
        lambda text: json.dumps({**json.loads(text), "replaces": []}),
        lambda text: json.dumps({**json.loads(text), "texts": dict.fromkeys(snapshot.FILES, 5)}),
        lambda text: json.dumps(dict.fromkeys(snapshot.FILES, "\ud800")),
        lambda text: json.dumps(json.loads(text)["texts"]),
        *(without(part, name) for part in ("texts", "replaces") for name in snapshot.FILES),
    ],
)
def test_pending_file_that_is_none_is_reported_and_set_aside(tmp_path, old, change):
    store.put(tmp_path, old)
    taken = snapshot.take(tmp_path)
    texts = dict.fromkeys(snapshot.FILES, "")
    path = tmp_path / snapshot.PENDING
    path.write_text(change(snapshot.pending(texts, taken.digests).decode()))
    assert times(tmp_path) == OLD
    (damage,) = log.read(tmp_path).damaged
    assert (damage.file, damage.reason) == (snapshot.PENDING, "it is not what te-select writes")
    with pytest.warns(RuntimeWarning, match=r"\.pending\.json line 1 is left out"):
        log.read(tmp_path).warn()
    store.put(tmp_path, [])
    assert not path.exists()
    assert times(tmp_path) == OLD
    assert log.read(tmp_path).damaged == ()


def test_file_rewritten_with_as_many_bytes_is_read_again(tmp_path, old):
    store.put(tmp_path, old)
    assert times(tmp_path) == OLD
    path = tmp_path / log.RECORDS
    before = path.stat()
    text = path.read_text()
    path.write_text(text.replace("[0.001", "[0.009", 1))
    after = path.stat()
    assert (before.st_size, before.st_ino) == (after.st_size, after.st_ino)
    assert times(tmp_path) == {**OLD, "w4_100cte": 9e-3}


def test_file_that_another_took_the_place_of_is_read_again(tmp_path, old):
    """It has as many bytes, and is as old."""
    store.put(tmp_path, old)
    assert times(tmp_path) == OLD
    path, other = tmp_path / log.RECORDS, tmp_path / "other"
    before = path.stat()
    other.write_text(path.read_text().replace("[0.001", "[0.009", 1))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(path)
    after = path.stat()
    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    assert times(tmp_path) == {**OLD, "w4_100cte": 9e-3}


def test_pending_write_is_read_as_long_as_it_is_there(tmp_path, old):
    store.put(tmp_path, old)
    assert times(tmp_path) == OLD
    taken = snapshot.take(tmp_path)
    texts = {name: data.decode() for name, data in taken.data.items()}
    texts[log.RECORDS] = texts[log.RECORDS].replace("[0.001", "[0.009", 1)
    path = tmp_path / snapshot.PENDING
    path.write_bytes(snapshot.pending(texts, taken.digests))
    assert times(tmp_path) == {**OLD, "w4_100cte": 9e-3}
    path.unlink()
    assert times(tmp_path) == OLD


@pytest.mark.parametrize("name", REPLACED)
def test_reader_that_a_write_overtakes_reads_again(tmp_path, old, new, monkeypatch, name):
    store.put(tmp_path, old)
    contents = snapshot.contents

    def overtaken(path):
        read = contents(path)
        if path.name == name:
            monkeypatch.undo()
            store.put(tmp_path, new)
        return read

    monkeypatch.setattr(snapshot, "contents", overtaken)
    assert times(tmp_path) == NEW
    assert log.read(tmp_path).damaged == log.read(tmp_path).unused == ()


def test_files_that_change_all_the_time_are_given_up(tmp_path, old, monkeypatch):
    store.put(tmp_path, old)
    contents = snapshot.contents

    def touched(path):
        (tmp_path / log.RECORDS).touch()
        return contents(path)

    monkeypatch.setattr(snapshot, "contents", touched)
    monkeypatch.setattr(snapshot, "_PAUSE", 0)
    with pytest.raises(te_select.TuningError, match="change all the time"):
        log.read(tmp_path)


def test_reader_never_sees_half_a_write(tmp_path):
    """Two states of the logs, with different lines in different places, take turns."""
    states = [[make(flat(n)) for n in numbers] for numbers in ((1, 2, 3, 4, 5), (9, 4, 3))]
    folder = tmp_path / V4.name
    stop = threading.Event()

    def write():
        while not stop.is_set():
            for state in states:
                store.put(folder, state)
                others = [entry for entry in log.read(folder).entries if entry not in state]
                store.drop(folder, others)

    store.put(folder, states[0])
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(60):
            found = log.read(folder)
            assert found.damaged == ()
            assert len(found.entries) >= 3
    finally:
        stop.set()
        writer.join()
