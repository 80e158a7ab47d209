"""Writing records: killed writers, writers at once, folders that cannot be written."""

import dataclasses
import os
import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import tvm_ffi
from filelock import FileLock, Timeout
from pytest import fixture, mark, raises
from tvm import s_tir
from tvm.s_tir import meta_schedule as ms

from te_select import TuningError
from te_select.backends import schedule_of
from te_select.backends.targets import resolve
from te_select.base import atomic
from te_select.compiler.scheduling import schedule
from te_select.records import folders, manage, writer
from te_select.records.folders import RECORDS, SESSIONS, WORKLOADS
from te_select.records.log import read
from te_select.tuning.space import Space
from tests.support import alike, flat
from tests.support.machines import OTHER_USER, needs_users
from tests.support.tuning import BIG, FEW, ROWS, SMALL, V4, edit, keys, make, of_another_tvm, record

WRITTEN = (RECORDS, WORKLOADS, RECORDS, SESSIONS)  # the first time empty


@fixture(scope="module")
def flats():
    return [make(flat(n)) for n in (100, 101, 102)]


def test_records_keep_their_order_so_that_diffs_read_well(tmp_path, entries):
    writer.put(tmp_path, entries)
    assert list(read(tmp_path).entries) == entries
    before = (tmp_path / SESSIONS).read_text().splitlines()
    writer.put(tmp_path, [make(SMALL, 2e-3), make(FEW)])
    after = (tmp_path / SESSIONS).read_text().splitlines()
    assert [after[0], after[2]] == [before[0], before[2]]
    assert keys(tmp_path) == [*(entry.key for entry in entries), make(FEW).key]
    assert read(tmp_path).entries[1].seconds == 2e-3


def test_another_broadcast_of_a_kernel_replaces_its_record(tmp_path):
    writer.put(tmp_path, [make(SMALL), make(alike(4, 256))])
    assert keys(tmp_path) == ["w4_1024cte"]


class Died(BaseException):
    """Raised instead of the death of a process."""


@mark.parametrize("written", range(len(WRITTEN) + 1))
@mark.parametrize("what", ["a new record", "another time", "one less"])
def test_cut_write_leaves_the_old_records_or_the_new(tmp_path, flats, monkeypatch, written, what):
    """After each of its files."""
    writer.put(tmp_path, flats)
    left = list(WRITTEN[:written])

    def replace(path, data):
        if not left:
            raise Died
        assert path.name == left.pop(0)
        atomic.replace(path, data)

    def write():
        if what == "one less":
            writer.drop(tmp_path, flats[:1])
        else:
            writer.put(tmp_path, [make(FEW) if what == "a new record" else make(flat(101), 2e-3)])

    before = list(read(tmp_path).entries)
    with monkeypatch.context() as patched:
        patched.setattr("te_select.records.writer.atomic", SimpleNamespace(replace=replace))
        if written < len(WRITTEN):
            with raises(Died):
                write()
        else:
            write()
    found = list(read(tmp_path).entries)
    assert (found == before) == (written < len(WRITTEN))
    assert not any(entry.edited for entry in found)
    assert read(tmp_path).damaged == ()
    ms.database.JSONDatabase(work_dir=str(tmp_path)).get_all_tuning_records()
    write()
    assert list(read(tmp_path).entries) != before


@mark.parametrize("write", [writer.put, writer.drop])
def test_lock_is_held_from_reading_to_writing(tmp_path, flats, monkeypatch, write):
    writer.put(tmp_path, flats)
    tried = []

    def watched(function):
        def call(*arguments):
            with raises(Timeout), ThreadPoolExecutor(1) as other:
                other.submit(FileLock(tmp_path / writer.LOCK).acquire, timeout=0).result()
            tried.append(function)
            return function(*arguments)

        return call

    monkeypatch.setattr("te_select.records.log.read", watched(read))
    monkeypatch.setattr("te_select.records.writer.atomic.replace", watched(writer.atomic.replace))
    write(tmp_path, flats[:1])
    assert len(tried) == 1 + len(WRITTEN)  # one reading, and the files


def test_prune_and_import_keep_what_was_recorded_meanwhile(tmp_path, flats, monkeypatch):
    folder = tmp_path / "mine" / V4.name

    def looking(_entry):
        monkeypatch.undo()
        writer.put(folder, [make(FEW, 1e-3)])

    writer.put(folder, flats)
    edit(folder, lambda lines: lines.append("torn"))
    monkeypatch.setattr("te_select.records.doubt.misfit", looking)
    manage.prune(tmp_path / "mine")
    assert keys(folder) == [*(entry.key for entry in flats), "w4"]
    writer.drop(folder, read(folder).entries)
    writer.put(tmp_path / "theirs" / V4.name, [make(FEW, 2e-3)])
    monkeypatch.setattr("te_select.records.doubt.misfit", looking)
    merged = manage.merge(tmp_path / "theirs", tmp_path / "mine")
    assert (merged.taken, merged.kept) == ([], [f"{V4.name}/w4"])
    assert read(folder).entries[0].seconds == 1e-3


def test_damaged_line_stays_until_it_is_pruned(tmp_path, entries):
    writer.put(tmp_path, entries)
    edit(tmp_path, lambda lines: lines.__setitem__(1, lines[1][:70]))
    for _ in range(3):
        writer.put(tmp_path, [make(FEW)])
        assert keys(tmp_path) == [entries[0].key, entries[2].key, make(FEW).key]
        (damage,) = read(tmp_path).damaged
        assert (damage.line, len(damage.text)) == (4, 70)
    ms.database.JSONDatabase(work_dir=str(tmp_path))
    writer.drop(tmp_path, [])
    assert read(tmp_path).damaged == ()


@mark.parametrize(
    "kind, name",
    [
        *product(["pipe", "folder"], [writer.LOCK, SESSIONS]),
        *product(["folder"], [WORKLOADS, RECORDS]),
    ],
)
def test_what_is_no_file_is_refused_without_a_wait(tmp_path, flats, name, kind):
    folder = tmp_path / "t"
    writer.put(folder, flats)
    (folder / name).unlink(missing_ok=True)
    (os.mkfifo if kind == "pipe" else os.mkdir)(folder / name)
    if (name, kind) == (writer.LOCK, "pipe"):  # a pipe can be locked, but new filelocks refuse it
        try:
            writer.put(folder, [])
        except TuningError as error:
            assert "cannot be written" in str(error)
        return
    with raises(TuningError, match=r"not a regular file|cannot be written"):
        writer.put(folder, [])


@mark.parametrize("wrong", ["a\0b", "x" * 300])
def test_folder_whose_name_is_none_is_refused(tmp_path, wrong):
    with raises(TuningError, match="cannot be written"):
        writer.put(tmp_path / wrong, [])


@needs_users
def test_folder_that_may_not_be_written_is_read_all_the_same(flats):
    """Even by root, who is another user meanwhile."""
    mine = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        writer.put(Path(name), flats)
        Path(name).chmod(0o555)
        os.seteuid(mine or OTHER_USER)
        try:
            assert len(keys(Path(name))) == 3
            with raises(TuningError, match="cannot be written: Permission denied"):
                writer.put(Path(name), [])
        finally:
            os.seteuid(mine)
            Path(name).chmod(0o755)


def test_drop_of_nothing_writes_no_file(tmp_path, flats):
    writer.put(tmp_path, flats)
    files = {path: path.stat().st_ino for path in tmp_path.iterdir()}
    writer.drop(tmp_path, [make(FEW)])
    assert {path: path.stat().st_ino for path in tmp_path.iterdir()} == files
    assert folders.of_targets(tmp_path.parent)


@mark.parametrize("target", [V4, resolve("cuda:sm_90")], ids=lambda target: target.kind)
@mark.parametrize("workload", [FEW, flat(4099, "complex128"), ROWS, BIG], ids=str)
def test_record_rebuilds_exactly_the_function_that_was_measured(workload, target, tmp_path):
    rules = schedule_of(target.kind)
    configs = Space(workload, target).configs
    for number, config in enumerate(random.Random(0).sample(configs, min(6, len(configs)))):
        entry = record(workload, target, config)
        writer.put(tmp_path / str(number), [entry])
        database = ms.database.JSONDatabase(work_dir=str(tmp_path / str(number)))
        (loaded,) = database.get_all_tuning_records()
        sch = s_tir.Schedule(loaded.workload.mod)
        loaded.trace.apply_to_schedule(sch, remove_postproc=False)
        replayed = sch.mod["main"]
        measured = schedule(workload, target, config=dataclasses.asdict(config)).func
        assert tvm_ffi.structural_equal(replayed, measured)
        assert rules.config_from(entry.config) == config == rules.config_of(replayed)
        assert entry.kind == target.kind


def test_records_that_this_tvm_cannot_take_are_not_in_its_files(tmp_path, entries):
    writer.put(tmp_path, [entries[0], of_another_tvm(entries[1])])
    database = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert len(database.get_all_tuning_records()) == 1
    assert len(read(tmp_path).entries) == 2
