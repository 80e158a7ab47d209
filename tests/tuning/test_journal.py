"""The journal of an unfinished session: on the disk before anybody hears of a trial."""

import os
from pathlib import Path

import pytest

from te_select import TuningError
from te_select.tuning import journal as module
from te_select.tuning.journal import FOLDER, Journal, Trial, config_key

TRIAL = Trial({"unroll": 4}, 1e-3)


@pytest.fixture
def journal(tmp_path):
    (tmp_path / FOLDER).mkdir()
    return Journal(tmp_path, "w4_8c", {"tvm": "1"})


def test_trial_is_on_the_disk_before_append_returns(journal, monkeypatch):
    """And so is the name of the file, when it is new."""
    synced = []

    def fsync(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        synced.append((path, path.read_bytes() if path.is_file() else None))

    monkeypatch.setattr(os, "fsync", fsync)
    journal.append(TRIAL)
    first = journal.path.read_bytes()
    assert b'"unroll": 4' in first
    assert synced == [(journal.path, first), (journal.folder, None)]
    journal.append(TRIAL)
    assert synced[2:] == [(journal.path, journal.path.read_bytes())]


def test_trial_counts_only_when_the_disk_has_it(journal, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TuningError, match=r"w4_8c\.jsonl cannot be written: No space left"):
        journal.append(TRIAL)


def test_long_names_of_records_are_files_each_of_its_own(tmp_path):
    """A file system takes 255 bytes, and the lock's name has six more than the journal's."""
    (tmp_path / FOLDER).mkdir()
    names = ["w4" + "_2t_3c" * 100 + end for end in ("", "_4t", "_5t")]
    names += ["w4" + "_2t" * n for n in (60, 66, 67, 80)]
    journals = [Journal(tmp_path, name, {}) for name in names]
    assert len({journal.path for journal in journals}) == len(names)
    for i, journal in enumerate(journals):
        (journal.folder / f".{journal.path.name}.lock").touch()
        journal.append(Trial({"unroll": i}, 1e-3))
    for i, journal in enumerate(journals):
        assert list(journal.read()) == [config_key({"unroll": i})]
    assert journals[3].path.name == f"{names[3]}.jsonl"


def test_what_is_no_file_is_refused_at_once(journal):
    os.mkfifo(journal.path)
    with pytest.raises(TuningError, match="not a regular file"):
        journal.read()


def test_journal_that_cannot_be_removed_is_an_error_of_tuning(journal):
    journal.path.mkdir()
    with pytest.raises(TuningError, match=r"w4_8c\.jsonl cannot be written"):
        journal.remove()


def test_digest_of_a_long_name_is_whole():
    """Two names of one digest would share their trials."""
    path = Journal(Path("x"), "w4" + "_2t_3c" * 100, {}).path
    assert len(path.stem.rpartition("-")[2]) == 64
    assert module._CUT + 64 < 200
