"""The user's own records and the shipped ones; and records that were edited by hand."""

import json

import pytest

import te_select
from te_select.backends.targets import resolve
from te_select.records import folders, log, lookup
from te_select.tuning import session as module
from tests.cli.test_tune import FLAGS
from tests.support.cli import run, run_json
from tests.support.machines import on_x86_64
from tests.support.tuning_fakes import SMALL, FakeMeasurer

TARGET = "x86-64-v4"
V4 = resolve(TARGET)


@pytest.fixture
def tune(tmp_path, monkeypatch):
    """Tune with made-up times; no records are shipped."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(folders, "SHIPPED", tmp_path / "shipped")
    (tmp_path / "shipped").mkdir()
    monkeypatch.setattr(module, "open_measurer", lambda *_: FakeMeasurer())

    def tuned(folder=None, workload=SMALL):
        return te_select.tune(workload, TARGET, tuning_logs=folder, trials=80)

    return tuned


def test_tune_and_compile_agree_on_the_users_own_folder(tune, tmp_path):
    record = tune()
    assert folders.user_folder() == tmp_path / "home" / "te-select" / "tuning_logs"
    assert log.read(folders.user_folder() / TARGET).entries
    assert lookup.find(SMALL, V4).origin == f"tuned:{record.name}"


def test_own_record_comes_before_a_shipped_one(tune):
    tune()
    tune(folders.SHIPPED)
    path = folders.SHIPPED / TARGET / log.SESSIONS
    faster = json.loads(path.read_text()) | {"seconds": 1e-9}
    path.write_text(json.dumps(faster) + "\n")
    assert "edited" not in lookup.find(SMALL, V4).why


def test_exact_shipped_record_comes_before_an_own_near_one(tune):
    tune(None, te_select.Workload((1536,), (1536,), (1536,)))
    tune(folders.SHIPPED)
    assert lookup.find(SMALL, V4).origin == f"tuned:{TARGET}/w4_1024cte"


def test_shipped_records_are_used_without_an_own_folder(tune):
    tune(folders.SHIPPED)
    assert lookup.find(SMALL, V4).origin == f"tuned:{TARGET}/w4_1024cte"


def test_own_folder_that_is_damaged_is_a_warning(tune):
    tune(folders.SHIPPED)
    damaged = folders.user_folder() / TARGET
    damaged.mkdir(parents=True)
    (damaged / log.SESSIONS).write_text("damaged\n")
    with pytest.warns(RuntimeWarning, match="holds no usable line"):
        assert lookup.find(SMALL, V4).origin == f"tuned:{TARGET}/w4_1024cte"


def test_shipped_records_are_used_without_a_home(tune, monkeypatch):
    tune(folders.SHIPPED)
    monkeypatch.setenv("XDG_DATA_HOME", "~no-such-user")
    assert lookup.find(SMALL, V4).origin == f"tuned:{TARGET}/w4_1024cte"
    assert folders.default_folders() == [folders.SHIPPED]


def test_logs_list_shows_both_folders(tune):
    tune()
    tune(folders.SHIPPED)
    shown = run("logs", "list").stdout
    assert f"{folders.user_folder()}\n" in shown and f"{folders.SHIPPED}\n" in shown
    rows = run_json("logs", "list")["records"]
    assert [row["folder"] for row in rows] == [str(folders.user_folder()), str(folders.SHIPPED)]


@on_x86_64
def test_record_that_was_edited_by_hand_says_so(tune, tmp_path):
    tune(tmp_path / "logs")
    path = tmp_path / "logs" / TARGET / log.SESSIONS
    changed = json.loads(path.read_text())
    changed["seconds"] /= 7
    path.write_text(json.dumps(changed) + "\n")
    assert log.read(path.parent).entries[0].edited
    assert lookup.find(SMALL, V4, tmp_path / "logs").why.endswith(
        "edited by hand since it was tuned"
    )
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path / "logs")["records"]
    assert (row["gain"], row["edited"]) == ("edited by hand", True)
    flags = [*FLAGS, "--target", TARGET, "--tuning-logs", tmp_path / "logs"]
    assert "edited by hand" in run("compile", *flags, "-o", tmp_path / "mask.so").stdout


def test_record_that_was_not_edited_does_not_say_so(tune, tmp_path):
    tune(tmp_path / "logs")
    assert not log.read(tmp_path / "logs" / TARGET).entries[0].edited
    tune(tmp_path / "logs", te_select.Workload((8,), (8,), ()))
    assert not any(entry.edited for entry in log.read(tmp_path / "logs" / TARGET).entries)
