"""Writers of one folder at the same time, folders that cannot be written, and what is set aside."""

import dataclasses
import errno
import os
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

import te_select
from te_select.records import log, manage, metaschedule, snapshot, store
from tests.support.machines import OTHER_USER, needs_users
from tests.support.tuning_fakes import FEW
from tests.support.tuning_records import V4, edit, flat, keys, make


@pytest.fixture(scope="module")
def entries():
    return [make(flat(n)) for n in (100, 101, 102)]


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("write", [store.put, store.drop])
def test_lock_is_held_from_reading_to_writing(tmp_path, entries, monkeypatch, write):
    store.put(tmp_path, entries)
    edit(tmp_path, log.RECORDS, lambda lines: lines.append("torn"))
    tried = []

    def watched(function):
        def call(*arguments):
            with pytest.raises(Timeout), ThreadPoolExecutor(1) as other:
                other.submit(FileLock(tmp_path / store.LOCK).acquire, timeout=0).result()
            tried.append(function)
            return function(*arguments)

        return call

    monkeypatch.setattr(snapshot, "take", watched(snapshot.take))
    monkeypatch.setattr(store.atomic, "replace", watched(store.atomic.replace))
    write(tmp_path, [])
    assert len(tried) == 6  # one reading, the damaged line, and four files


def test_prune_and_import_beside_writers_lose_nothing(tmp_path, monkeypatch):
    folder = tmp_path / "mine" / V4.name
    made = [make(flat(n)) for n in range(100, 112)]
    imported = [make(flat(n), 5e-4) for n in range(106, 118)]
    store.put(tmp_path / "theirs" / V4.name, imported)
    monkeypatch.setattr(metaschedule, "problem", lambda entry: None)
    store.put(folder, made[:1])

    def put(entry):
        store.put(folder, [entry])

    with ThreadPoolExecutor(4) as pool:
        tasks = [pool.submit(put, entry) for entry in made]
        tasks += [pool.submit(manage.prune, tmp_path / "mine") for _ in range(6)]
        tasks += [pool.submit(manage.merge, tmp_path / "theirs", tmp_path / "mine")]
        for task in tasks:
            task.result()
    assert set(keys(folder)) == {entry.key for entry in (*made, *imported)}


def test_prune_keeps_what_was_recorded_while_it_looked(tmp_path, entries, monkeypatch):
    folder = tmp_path / V4.name
    store.put(folder, entries)
    edit(folder, log.RECORDS, lambda lines: lines.append("torn"))

    def looking(entry):
        monkeypatch.undo()
        store.put(folder, [make(FEW)])

    monkeypatch.setattr(metaschedule, "problem", looking)
    manage.prune(tmp_path)
    assert keys(folder) == [*(entry.key for entry in entries), "w4"]


def test_import_keeps_what_was_recorded_faster_meanwhile(tmp_path, monkeypatch):
    folder = tmp_path / "mine" / V4.name
    store.put(tmp_path / "theirs" / V4.name, [make(FEW, 2e-3)])

    def looking(entry):
        monkeypatch.undo()
        store.put(folder, [make(FEW, 1e-3)])

    monkeypatch.setattr(metaschedule, "problem", looking)
    merged = manage.merge(tmp_path / "theirs", tmp_path / "mine")
    assert (merged.taken, merged.kept) == ((), (f"{V4.name}/w4",))
    assert log.read(folder).best("w4").seconds == 1e-3


def test_prune_judges_every_record_of_a_pattern_for_itself(tmp_path, entries, monkeypatch):
    """The fastest record cannot be used: it is of another TVM. The next one stays."""
    folder = tmp_path / V4.name
    store.put(folder, entries)
    lines = (folder / log.RECORDS).read_text().splitlines()
    faster, slower = (lines[1].replace("[0.001", f"[{time}", 1) for time in ("0.0005", "0.5"))
    edit(folder, log.RECORDS, lambda lines: lines.extend([faster, slower]))
    monkeypatch.setattr(
        manage, "misfit", lambda entry: "of no use" if entry.seconds == 5e-4 else None
    )
    gone = manage.prune(tmp_path)
    assert gone == [f"{V4.name}/w4_101cte: of no use", f"{V4.name}: 1 slower records"]
    assert log.read(folder).entries == tuple(entries)


def test_record_replaces_those_of_its_own_pattern_only(tmp_path, entries):
    """Merges by hand may leave several records of one pattern."""
    store.put(tmp_path, entries)
    slower = (tmp_path / log.RECORDS).read_text().splitlines()[0].replace("[0.001", "[0.5", 1)
    edit(tmp_path, log.RECORDS, lambda lines: lines.extend([slower, lines[2]]))
    store.put(tmp_path, [make(flat(102), 2e-3)])
    assert keys(tmp_path) == ["w4_100cte", "w4_101cte", "w4_102cte", "w4_100cte"]
    assert log.read(tmp_path).best("w4_102cte").seconds == 2e-3


def test_session_of_another_config_is_not_the_records(tmp_path):
    entry = make(FEW)
    entry = dataclasses.replace(entry, session={**entry.session, "config": dict(entry.knobs)})
    store.put(tmp_path, [entry])
    assert log.read(tmp_path).entries == (entry,)
    edit(tmp_path, log.SESSIONS, lambda lines: lines.append(lines[0].replace("64", "32")))
    assert log.read(tmp_path).entries == (entry,)
    edit(tmp_path, log.SESSIONS, lambda lines: lines.pop(0))
    assert log.read(tmp_path).best("w4").session == {}
    assert (
        "sessions.json line 1 is left out: no usable record is its w4"
        in (log.read(tmp_path).complaints()[0])
    )
    store.put(tmp_path, [make(flat(5))])
    assert '"vector_bytes": 32' in (tmp_path / store.ASIDE).read_text()


def test_line_is_set_aside_once(tmp_path, entries):
    store.put(tmp_path, entries)
    for _ in range(3):
        edit(tmp_path, log.RECORDS, lambda lines: lines.append("torn"))
        store.put(tmp_path, [])
    assert (tmp_path / store.ASIDE).read_text().splitlines().count("torn") == 1


def test_workload_that_no_record_names_any_more_is_set_aside(tmp_path, entries):
    store.put(tmp_path, entries)
    (tmp_path / store.ASIDE).unlink(missing_ok=True)
    gone = (tmp_path / log.WORKLOADS).read_text().splitlines()[1]
    edit(tmp_path, log.RECORDS, lambda lines: lines.pop(1))
    assert not log.read(tmp_path).damaged
    store.put(tmp_path, [])
    assert gone not in (tmp_path / log.WORKLOADS).read_text()
    assert gone in (tmp_path / store.ASIDE).read_text().splitlines()


def test_damaged_lines_are_not_written_through_a_link(tmp_path, entries):
    """It may lead to any file of the user."""
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    folder = tmp_path / "t"
    store.put(folder, entries)
    (folder / store.ASIDE).symlink_to(precious)
    edit(folder, log.RECORDS, lambda lines: lines.append("torn"))
    store.drop(folder, [])
    assert precious.read_text() == "mine\n"
    assert not (folder / store.ASIDE).is_symlink()
    assert (folder / store.ASIDE).read_text().endswith("\ntorn\n")


@pytest.mark.parametrize("damaged", [False, True])
def test_disk_that_fails_leaves_the_old_records(tmp_path, entries, monkeypatch, damaged):
    store.put(tmp_path, entries)
    if damaged:
        edit(tmp_path, log.RECORDS, lambda lines: lines.append("torn"))
    before = files_in(tmp_path)

    def failing(handle):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(te_select.TuningError, match="cannot be written: Input/output error"):
        store.put(tmp_path, [make(flat(103))])
    assert files_in(tmp_path) == before
    monkeypatch.undo()
    store.put(tmp_path, [make(flat(103))])
    assert keys(tmp_path) == [*(entry.key for entry in entries), "w4_103cte"]


@pytest.mark.parametrize("name", [store.LOCK, store.ASIDE, *snapshot.FILES, snapshot.PENDING])
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_is_refused_without_a_wait(tmp_path, entries, name, kind):
    folder = tmp_path / "t"
    store.put(folder, entries)
    edit(folder, log.RECORDS, lambda lines: lines.append("torn"))
    (folder / name).unlink(missing_ok=True)
    (os.mkfifo if kind == "pipe" else os.mkdir)(folder / name)
    if (name, kind) == (store.LOCK, "pipe"):  # a pipe can be locked, but new filelocks refuse it
        try:
            store.put(folder, [])
        except te_select.TuningError as error:
            assert "cannot be written" in str(error)
        return
    with pytest.raises(te_select.TuningError, match=r"not a regular file|cannot be written"):
        store.put(folder, [])


def test_many_damaged_lines_are_a_few_warnings(tmp_path, entries):
    store.put(tmp_path, entries)
    edit(tmp_path, log.RECORDS, lambda lines: lines.extend(f"torn{i}" for i in range(900)))
    with pytest.warns(RuntimeWarning) as caught:
        log.read(tmp_path).warn()
    assert len(caught) == 6
    assert "895 more lines are left out" in str(caught[-1].message)
    assert len(log.read(tmp_path).complaints()) == 900


@pytest.mark.parametrize("wrong", ["a\0b", "x" * 300])
def test_folder_whose_name_is_none_is_refused(tmp_path, wrong):
    with pytest.raises(te_select.TuningError, match="cannot be written"):
        store.put(tmp_path / wrong, [])


FULL = """
    import resource, sys
    from pathlib import Path
    from te_select.errors import TuningError
    from te_select.records import log, store
    entries = log.read(Path(sys.argv[1])).entries
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    try:
        store.put(Path(sys.argv[2]), entries)
    except TuningError as error:
        print(error)
"""


@pytest.mark.parametrize("size", [0, 100, 30_000, 100_000])
def test_full_disk_leaves_the_logs_as_they_were(tmp_path, entries, size):
    store.put(tmp_path / "more", [make(FEW)])
    store.put(tmp_path / "t", entries)
    edit(tmp_path / "t", log.RECORDS, lambda lines: lines.append("torn"))
    before = files_in(tmp_path / "t")
    words = [sys.executable, "-c", textwrap.dedent(FULL), str(tmp_path / "more")]
    done = subprocess.run(
        [*words, str(tmp_path / "t"), str(size)], capture_output=True, text=True, check=True
    )
    assert "cannot be written: " in done.stdout
    assert "File too large" in done.stdout
    after = files_in(tmp_path / "t")
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) <= {store.ASIDE}
    store.put(tmp_path / "t", [make(FEW)])
    assert set(keys(tmp_path / "t")) == {*(entry.key for entry in entries), "w4"}


@pytest.fixture
def unwritable(entries):
    """A folder of records that this process may only read, even as root."""
    mine = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store.put(folder, entries)
        folder.chmod(0o555)
        if mine == 0:
            os.seteuid(OTHER_USER)
        try:
            yield folder
        finally:
            os.seteuid(mine)
            folder.chmod(0o755)


@needs_users
def test_folder_that_may_not_be_written_is_read_all_the_same(unwritable):
    assert len(keys(unwritable)) == 3
    with pytest.raises(te_select.TuningError, match="cannot be written: Permission denied"):
        store.put(unwritable, [])


def test_drop_of_nothing_writes_no_file(tmp_path, entries):
    store.put(tmp_path, entries)
    files = {path: path.stat().st_ino for path in tmp_path.iterdir()}
    assert store.drop(tmp_path, [make(FEW)]) == []
    assert {path: path.stat().st_ino for path in tmp_path.iterdir()} == files
