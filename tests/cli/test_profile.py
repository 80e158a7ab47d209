"""``te-select profile``, and where the profile is shown."""

import os
from pathlib import Path

from pytest import fixture, mark

from te_select.backends.cpu.environment import profile_here
from te_select.records.doubt import BUSY
from te_select.runtime.call.cpu.profile import DECISIONS, NEVER, from_bytes
from te_select.tuning.calibrate import Comparison, Measured
from tests.support.cli import refused, run, run_json

FOUND = Measured(dict.fromkeys(DECISIONS, 1) | {"bytes_per_thread": 1 << 20}, ())


@fixture(autouse=True)
def idle(tmp_path, monkeypatch):
    """An idle machine, a home of its own, and made-up figures."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    monkeypatch.setattr("te_select.timing.cores.busy_cores", lambda: BUSY)
    row = Comparison("past the cache", 2, 1 << 20, 1.25)
    found = Measured(FOUND.decisions, (row,))
    monkeypatch.setattr(
        "te_select.tuning.calibrate.measure", lambda _current, _step, _rounds: found
    )


def test_measured_profile_is_kept_and_in_effect():
    before = profile_here()
    result = run("profile")
    assert result.exit_code == 0, result.output
    assert before.file in result.stdout
    assert "1.25" in result.stdout
    values = ",".join(f"{key}={value}" for key, value in FOUND.decisions.items())
    assert f": TE_SELECT_PROFILE={values}\n" in result.stdout
    assert "may be wrong" not in result.stdout
    after = profile_here()
    assert (after.origin, after.decisions) == ("measured by the user", FOUND.decisions)
    assert "measured by te-select" in Path(before.file).read_text(encoding="utf-8")


def test_unsure_threshold_is_named_and_asks_for_more_rounds(monkeypatch):
    asked = []

    def measured(_current, _step, rounds):
        asked.append(rounds)
        late = {"fill": (1, NEVER), "rows": (1, NEVER)}
        return Measured(FOUND.decisions, (), {"stream": (9 << 20, 19 << 20), **late})

    monkeypatch.setattr("te_select.tuning.calibrate.measure", measured)
    result = run("profile", "--rounds", "30")
    assert asked == [30]
    assert (
        "stream is unsure and stays: from 9 MB moved on in one pass, from 19 MB moved on in another"
        "; try --rounds 60\n" in result.stdout
    )
    assert result.stdout.count("from 1 bytes of output on in one pass, never in another") == 2
    document = run_json("profile", "--dry-run")
    assert (document["file"], document["measured"]) == (None, FOUND.decisions)
    assert document["unsure"]["stream"] == [9 << 20, 19 << 20]
    assert (document["rounds"], asked[1]) == (9, 9)
    assert run("profile", "--rounds", "1").exit_code == 2


@mark.parametrize("dry", [False, True])
@mark.parametrize("force", [False, True])
def test_busy_machine_is_not_measured_unless_forced(monkeypatch, force, dry):
    monkeypatch.setattr("te_select.timing.cores.busy_cores", lambda: 1.5)
    flags = {"--force": force, "--dry-run": dry}
    result = run("profile", *(flag for flag, is_given in flags.items() if is_given))
    assert result.exit_code == (0 if force else 1)
    assert ("other programs use 1.5 cores" in result.stderr) != force
    assert ("these values may be wrong" in result.stdout) == force
    kept = profile_here().origin == "measured by the user"
    assert kept == (force and not dry)


def test_folder_that_cannot_be_made_is_refused_before_timing(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("te_select.tuning.calibrate.measure", None)  # it is not called
    assert "file/te-select/machines" in refused("profile", code=1)


def test_without_a_home_only_a_dry_run_measures(monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME", raising=False)
    assert "expected HOME or XDG_CONFIG_HOME" in refused("profile", code=1)
    assert run("profile", "--dry-run").exit_code == 0


def test_wish_of_the_environment_is_named_where_it_is_none(monkeypatch):
    monkeypatch.setenv("TE_SELECT_PROFILE", "skip=7")
    said = "TE_SELECT_PROFILE: 'skip=7' has a value that is out of range"
    for words in ((), ("--dry-run",)):
        assert said in refused("profile", *words, code=1)
    assert "TE_SELECT_PROFILE: 'skip=7'" in run_json("env")["profile"]["problem"]


def test_env_and_inspect_show_what_is_in_effect(tmp_path, monkeypatch):
    said = "stream_per_thread=0,stream_per_l3=3145728,skip=1,backwards=1"
    monkeypatch.setenv("TE_SELECT_PROFILE", said)
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "1")
    shown = run_json("env")["profile"]
    assert shown["origin"] == "TE_SELECT_PROFILE"
    assert (shown["threads"], shown.get("problem")) == (1, None)
    assert shown["stores_past_the_cache"] == "from 3 MB moved on"
    assert shown["look_at_cond_first"].startswith("in large calls that read cond once")
    assert shown["walk_backwards"] == "where out lies just ahead"
    library = tmp_path / "library.so"
    run_json("compile", "--cond", "n,7", "--then", "n,7", "--else", "", "-o", library)
    inspected = run_json("inspect", library, "--load")
    assert inspected["in_effect"]["stores_past_the_cache"] == "from 3 MB moved on"
    assert "from 3 MB moved on" in run("inspect", library, "--load").stdout


SOME = {"": len(os.sched_getaffinity(0)), "007": 7}
SOME |= dict.fromkeys(("99999", "9" * 30, "9" * 5000), 256)


@mark.parametrize("text", ["abc", "0", "00", "-1", "1.5", " 2 ", "²", *SOME])
def test_env_shows_the_threads_and_what_is_wrong_with_them(monkeypatch, text):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", text)
    monkeypatch.setenv("TE_SELECT_PROFILE", f"bytes_per_thread={1 << 60}")
    shown = run_json("env")["profile"]
    assert shown["another_thread"] == "never"
    if text in SOME:
        assert (shown["threads"], shown.get("problem")) == (SOME[text], None)
    else:
        quoted = text if text.isascii() else "??"
        assert f"TE_SELECT_NUM_THREADS is '{quoted}'" in shown["problem"]


@mark.parametrize(
    "count, said",
    [
        (1023, "1023 bytes"),
        (1024, "1 KB"),
        ((1 << 20) - 1024, "1.02e+03 KB"),
        (1 << 20, "1 MB"),
        (3 << 29, "1.5 GB"),
        (NEVER - 1, "GB"),
        (NEVER, "never"),
    ],
)
def test_bytes_are_in_the_largest_unit(count, said):
    assert said in from_bytes(count, "moved")
