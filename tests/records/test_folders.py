"""The user's own records and the shipped ones; and records that were edited by hand."""

import json

import pytest

from te_select.records import folders, log
from te_select.records.lookup import find
from tests.support import flat
from tests.support.cli import refused, run, run_json
from tests.support.machines import on_x86_64
from tests.support.tuning import FLAGS, ON, SMALL, V4, add

EXACT = f"tuned:{V4.name}/w4_1024cte"


def test_own_record_comes_before_a_shipped_one_of_its_size(own_records):
    add(own_records, flat(1536), unroll=1)
    add(folders.SHIPPED, SMALL, said={"seconds": 1e-9}, unroll=2)
    assert find(SMALL, V4).origin == EXACT  # and not the own one that is near
    add(own_records, SMALL, unroll=8)
    assert find(SMALL, V4).config.unroll == 8


@pytest.mark.parametrize("home", ["none", "damaged", "missing"])
def test_shipped_records_are_used_without_own_ones(own_records, monkeypatch, home):
    add(folders.SHIPPED, SMALL)
    if home == "none":
        monkeypatch.setenv("XDG_DATA_HOME", "~no-such-user")
        assert folders.default_folders() == [folders.SHIPPED]
    if home == "damaged":
        (own_records / V4.name).mkdir(parents=True)
        (own_records / V4.name / log.SESSIONS).write_text("damaged\n")
        with pytest.warns(RuntimeWarning, match="holds no usable line"):
            assert find(SMALL, V4).origin == EXACT
    else:
        assert find(SMALL, V4).origin == EXACT


def test_logs_list_shows_both_folders(own_records):
    for folder in (own_records, folders.SHIPPED):
        add(folder, SMALL)
    shown = run("logs", "list").stdout
    assert f"{own_records}\n" in shown and f"{folders.SHIPPED}\n" in shown
    rows = run_json("logs", "list")["records"]
    assert [row["folder"] for row in rows] == [str(own_records), str(folders.SHIPPED)]


@on_x86_64
def test_record_that_was_edited_by_hand_says_so(tmp_path):
    add(tmp_path, SMALL)
    path = tmp_path / V4.name / log.SESSIONS
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": 1e-4}) + "\n")
    said = "edited by hand since it was tuned"
    assert find(SMALL, V4, tmp_path).why.endswith(said)
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["gain"], row["outcome"], row["edited"]) == (None, "edited by hand", True)
    flags = [*FLAGS, *ON, "--tuning-logs", tmp_path, "-o", tmp_path / "mask.so"]
    assert "edited by hand" in run("compile", *flags).stdout


def test_missing_home_is_named_where_records_are_written(monkeypatch, own_records):
    monkeypatch.setenv("XDG_DATA_HOME", "~no-such-user")
    for words in (("tune", "--again"), ("logs", "prune")):
        said = refused(*words, code=1)
        assert "there is no folder of your records" in said and "XDG_DATA_HOME" in said
