"""The journal of an unfinished session: what is kept, and what is left out."""

import os

import pytest

from te_select.tuning import journal as module
from te_select.tuning.journal import FOLDER, Journal, Trial, config_key


def test_trials_of_another_version_do_not_count(tmp_path):
    trial = Trial({"unroll": 4}, 1e-3)
    (tmp_path / FOLDER).mkdir()
    Journal(tmp_path, "w4_8c", {"tvm": "1"}).append(trial)
    assert Journal(tmp_path, "w4_8c", {"tvm": "1"}).read() == {config_key(trial.config): trial}
    assert Journal(tmp_path, "w4_8c", {"tvm": "2"}).read() == {}


@pytest.mark.parametrize("torn", [b'{"config": {"unr', b"\xff\x00", b"[]", b'{"seconds": 1}'])
def test_trial_after_a_torn_line_is_kept(tmp_path, torn):
    journal = Journal(tmp_path, "w4_8c", {"tvm": "1"})
    (tmp_path / FOLDER).mkdir()
    journal.path.write_bytes(torn)
    trial = Trial({"unroll": 4}, None, "it hung")
    journal.append(trial)
    with pytest.warns(RuntimeWarning, match=r"w4_8c\.jsonl line 1 is left out: "):
        assert list(journal.read().values()) == [trial]


@pytest.mark.parametrize(
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
    with pytest.warns(RuntimeWarning, match="line 2 is left out: "):
        assert journal.read() == {}


def test_trial_is_on_the_disk_when_it_was_appended(tmp_path, monkeypatch):
    journal = Journal(tmp_path, "w4_8c", {})
    (tmp_path / FOLDER).mkdir()
    synced = []

    def fsync(number):
        assert os.path.samestat(os.fstat(number), journal.path.stat())
        synced.append(journal.path.read_bytes())

    monkeypatch.setattr(module.os, "fsync", fsync)
    for unroll in (1, 2):
        journal.append(Trial({"unroll": unroll}, 1e-3))
        assert synced[-1] == journal.path.read_bytes()
        assert len(journal.read()) == len(synced) == unroll


@pytest.mark.parametrize("length", [200, 201, 3000])
def test_name_that_no_file_could_have_is_cut_and_told_from_others(tmp_path, length):
    (tmp_path / FOLDER).mkdir()
    name = "w4_".ljust(length - 1, "1")
    journals = [Journal(tmp_path, name + last, {}) for last in "ct"]
    for unroll, each in enumerate(journals, 1):
        assert len(f".{each.path.name}.lock") <= 255
        each.append(Trial({"unroll": unroll}, 1e-3))
    assert [list(each.read()) for each in journals] == [[(("unroll", 1),)], [(("unroll", 2),)]]


def test_trials_of_a_workload_that_is_done_are_forgotten(tmp_path):
    (tmp_path / FOLDER).mkdir()
    journals = [Journal(tmp_path, name, {}) for name in ("w4_8c", "w4_9c")]
    for each in journals:
        each.append(Trial({"unroll": 1}, 1e-3))
    journals[0].remove()
    assert [len(each.read()) for each in journals] == [0, 1]
    journals[0].remove()
