"""The journal of an unfinished session: a trial is on the disk before it is reported."""

import errno
import os
from pathlib import Path

from pytest import fixture, mark, raises, warns

from te_select import TuningError
from te_select.tuning.journal import _CUT, FOLDER, Journal, Trial, config_key

TRIAL = Trial({"unroll": 4}, 1e-3)


@fixture
def journal(tmp_path):
    (tmp_path / FOLDER).mkdir()
    return Journal(tmp_path, "w4_8c", {"tvm": "1"})


def test_trial_is_on_the_disk_before_append_returns(journal, monkeypatch):
    """If the file is new, its name in the folder is on the disk, too."""
    synced = []

    def fsync(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append((path, path.read_bytes() if path.is_file() else None))

    monkeypatch.setattr("os.fsync", fsync)
    journal.append(TRIAL)
    first = journal.path.read_bytes()
    assert b'"unroll": 4' in first
    assert synced == [(journal.path, first), (journal.folder, None)]
    journal.append(TRIAL)
    assert synced[2:] == [(journal.path, journal.path.read_bytes())]


@mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_trial_that_does_not_reach_the_disk_is_an_error(journal, monkeypatch, number):
    def failing(handle):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", failing)
    said = rf"w4_8c\.jsonl cannot be written: {os.strerror(number)}"
    with raises(TuningError, match=said):
        journal.append(TRIAL)


def test_long_names_of_records_are_files_each_of_its_own(tmp_path):
    """A file system takes 255 bytes, and the lock's name has six more than the journal's."""
    (tmp_path / FOLDER).mkdir()
    names = ["w4" + "_2t_3c" * 100 + end for end in ("", "_4t", "_5t")]
    names += ["w4" + "_2t" * n for n in (60, 66, 67, 80, 84)]
    journals = [Journal(tmp_path, name, {}) for name in names]
    assert len({journal.path for journal in journals}) == len(names)
    assert len(journals[0].path.stem.rpartition("-")[2]) == 64  # a whole digest
    assert _CUT + 64 < 200
    for i, journal in enumerate(journals):
        (journal.folder / f".{journal.path.name}.lock").touch()
        journal.append(Trial({"unroll": i}, 1e-3))
    for i, journal in enumerate(journals):
        assert list(journal.read()) == [config_key({"unroll": i})]
    assert journals[3].path.name == f"{names[3]}.jsonl"


@mark.parametrize(
    "make, call",
    [
        (os.mkfifo, Journal.read),
        (os.mkfifo, lambda journal: journal.append(TRIAL)),
        (lambda path: path.symlink_to("precious"), lambda journal: journal.append(TRIAL)),
        (os.mkdir, Journal.close),
    ],
)
def test_what_is_no_file_is_refused_at_once(journal, make, call):
    precious = journal.path.with_name("precious")
    precious.touch()
    make(journal.path)
    with raises(TuningError, match=r"not a regular file|w4_8c\.jsonl cannot be written"):
        call(journal)
    assert precious.read_bytes() == b""


def test_trials_of_another_version_do_not_count(journal, tmp_path):
    journal.append(TRIAL)
    assert Journal(tmp_path, "w4_8c", {"tvm": "1"}).read() == {config_key(TRIAL.config): TRIAL}
    assert Journal(tmp_path, "w4_8c", {"tvm": "2"}).read() == {}


@mark.parametrize("torn", [b'{"config": {"unr', b"\xff\x00", b"[]", b'{"seconds": 1}'])
def test_trial_after_a_torn_line_is_kept(tmp_path, torn):
    journal = Journal(tmp_path, "w4_8c", {"tvm": "1"})
    (tmp_path / FOLDER).mkdir()
    journal.path.write_bytes(torn)
    trial = Trial({"unroll": 4}, None, "it hung")
    journal.append(trial)
    with warns(RuntimeWarning, match=r"w4_8c\.jsonl line 1 is left out: "):
        assert list(journal.read().values()) == [trial]


@mark.parametrize(
    "line",
    [
        "[" * 100_000,
        *(f'{{"config": {{"unroll": {x}}}, "seconds": 1.0' for x in ("Infinity", "1.5", "null")),
        *(
            f'{{"config": {{"unroll": 4}}, "seconds": {x}'
            for x in ('"x"', "[1]", "-1.0", "0.0", "NaN", "1e400", f"1{'0' * 400}")
        ),
    ],
    ids=lambda line: line[-20:],
)
def test_line_that_is_no_trial_is_reported_and_left_out(tmp_path, line):
    journal = Journal(tmp_path, "w4_8c", {})
    (tmp_path / FOLDER).mkdir()
    journal.path.write_text(f'\n{line}, "failure": null, "versions": {{}}}}\n')
    with warns(RuntimeWarning, match="line 2 is left out: "):
        assert journal.read() == {}


def test_trials_of_the_last_session_that_is_done_are_known(journal, tmp_path):
    assert journal.of_last_session() == []
    journal.append(Trial({"unroll": 1}, 4e-3))
    assert journal.of_last_session() == []
    journal.close()
    journal.append(TRIAL)
    journal.close()
    other = Journal(tmp_path, "w4_8c", {"tvm": "1", "cond": "rare"})
    other.append(Trial({"unroll": 2}, 3e-3))
    other.close()
    journal.append(Trial({"unroll": 8}, 2e-3))
    assert journal.of_last_session() == [TRIAL]
    assert list(journal.read()) == [config_key({"unroll": 8})]
