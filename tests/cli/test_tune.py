"""``te-select tune`` and ``te-select logs``: what they print, and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import te_select
from te_select import Workload
from te_select.cli import tune as cli_module
from te_select.machines.targets import resolve
from te_select.records import log
from te_select.timing import cores
from te_select.tuning import session as session_module
from te_select.tuning.display import Display
from te_select.tuning.record import Progress
from te_select.tuning.search import candidates
from tests.support.cli import run, run_json
from tests.support.tuning_fakes import BIG, FEW, SMALL, FakeMeasurer, by_unroll, flat

TARGET = "x86-64-v4"
ON = ["--target", TARGET]
FLAGS = ["--cond", "1024", "--then", "1024", "--else", "1024"]
V4 = resolve(TARGET)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeMeasurer]:
    """Replace the real measurer by a fake one, and the probes by a fixed roof."""

    def use(*args: Any, **keywords: Any) -> FakeMeasurer:
        measurer = FakeMeasurer(*args, **keywords)
        monkeypatch.setattr(session_module, "open_measurer", lambda *_: measurer)
        monkeypatch.setattr(cli_module, "_roof", lambda *_: 1e11)
        return measurer

    return use


def tuned(folder: Path, fake: Callable[..., FakeMeasurer], *flags: str) -> Any:
    fake()
    return run_json("tune", *(flags or FLAGS), *ON, "--trials", "80", "--tuning-logs", folder)


def test_tune_says_where_others_used_the_cores(
    tmp_path: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cores.Watch, "others", lambda _: 1.25)
    fake()
    result = run("tune", *FLAGS, *ON, "--trials", "80", "--tuning-logs", tmp_path)
    assert "unsure: other programs used 1.2 cores meanwhile; a config that" in result.stdout
    assert "1 of 1 are unsure: the same command tries them again" in result.stdout
    monkeypatch.setattr(cores.Watch, "others", lambda _: 0.25)
    again = run("tune", *FLAGS, *ON, "--trials", "80", "--tuning-logs", tmp_path)
    assert "unsure" not in again.stdout
    both = [*FLAGS, "--workload", json.dumps(FEW.to_json())]
    document = run_json("tune", *both, *ON, "--trials", "2", "--tuning-logs", tmp_path)
    assert document["busy_cores"] == 0.25  # of the one that was measured


def test_tune_prints_what_it_found_and_records_it(tmp_path: Path, fake: Any) -> None:
    fake()
    result = run("tune", *FLAGS, *ON, "--trials", "80", "--tuning-logs", tmp_path)
    assert result.exit_code == 0, result.output
    assert "select_float32_numpy_c1024_t1024_e1024" in result.stdout
    assert "2.00x" in result.stdout
    assert f"recorded in {tmp_path / TARGET / log.RECORDS}\n" in result.stdout
    assert f"te-select compile --tuning-logs {tmp_path} " in result.stdout
    assert [entry.key for entry in log.read(tmp_path / TARGET).entries] == ["w4_1024cte"]


def test_default_that_wins_is_said_to_have_won_wherever_its_record_is_shown(
    tmp_path: Path, fake: Any
) -> None:
    fake(flat)
    logs = [*ON, "--tuning-logs", tmp_path]
    assert "the default won" in run("tune", *FLAGS, "--trials", "80", *logs).stdout
    won = f"the default was the best of {len(candidates(SMALL, V4))} configs"
    assert won in run("logs", "best", *FLAGS, *logs).stdout
    assert won in run("compile", *FLAGS, *logs, "-o", tmp_path / "mask.so").stdout
    assert won in run("inspect", tmp_path / "mask.so").stdout
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert row["gain"] == "default won"


def test_inspect_says_whether_records_were_looked_at(tmp_path: Path, fake: Any) -> None:
    tuned(tmp_path / "logs", fake)
    library = tmp_path / "mask.so"
    for logs, why in (
        ("none", "records were not to be used"),
        (tmp_path / "logs", "no record is near enough"),
    ):
        other = ["--cond", "9", "--then", "9", "--else", ""]
        run("compile", *other, *ON, "--tuning-logs", logs, "-o", library)
        assert why in run("inspect", library).stdout


def test_second_run_measures_nothing(tmp_path: Path, fake: Any) -> None:
    first = tuned(tmp_path, fake)["workloads"][0]
    measurer = fake()
    again = run_json("tune", *FLAGS, *ON, "--tuning-logs", tmp_path)["workloads"][0]
    assert measurer.measured == []
    assert (first["fresh"], again["fresh"]) == (True, False)
    assert again["record"] == first["record"]


def test_suite_is_tuned_by_name_and_the_fresh_are_told_from_the_others(
    tmp_path: Path, fake: Any
) -> None:
    fake()
    common = [*ON, "--trials", "2", "--tuning-logs", tmp_path]
    run("tune", "--only", "scalar", *common)
    document = run_json("tune", "--suite", "default", "--only", "scalar*", *common)
    found = [(each["name"], each["fresh"]) for each in document["workloads"]]
    assert found == [("scalar", False), ("scalar-sides", True), ("scalar-cond", True)]


def test_all_workloads_of_a_library_are_tuned(tmp_path: Path, fake: Any) -> None:
    shapes = [(), (5,), ("n",)]
    library = te_select.export([Workload(s, s, ()) for s in shapes], tmp_path / "lib.so")
    measurer = fake()
    document = run_json(
        "tune", "--library", library, *ON, "--trials", "2", "--tuning-logs", tmp_path / "logs"
    )
    assert [each["name"] for each in document["workloads"]] == sorted(
        te_select.load(library), key=list(te_select.load(library)).index
    )
    assert len({candidate.workload for candidate in measurer.measured}) == 3


def test_workload_that_cannot_be_tuned_exits_1_and_the_others_are_tuned(
    tmp_path: Path, fake: Any
) -> None:
    fake(lambda candidate: None if candidate.workload == FEW else by_unroll(candidate))
    items = [json.dumps(workload.to_json()) for workload in (FEW, Workload((9,), (9,), ()))]
    args = ["tune", "--workload", items[0], "--workload", items[1], *ON, "--trials", "2"]
    result = run(*args, "--tuning-logs", tmp_path, "--json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["workloads"]
    assert "the default config failed: it crashed: SIGSEGV" in first["error"]
    assert second["record"]["trials"] == 2
    text = run(*args, "--tuning-logs", tmp_path)
    assert text.exit_code == 1
    assert "the default config failed" in text.stdout


def test_interrupt_keeps_what_was_measured_and_exits_130(tmp_path: Path, fake: Any) -> None:
    fake(stop_after=20)
    args = ["tune", "--workload", json.dumps(BIG.to_json()), *ON, "--trials", "40"]
    result = run(*args, "--tuning-logs", tmp_path, "--json")
    assert result.exit_code == 130
    assert json.loads(result.stdout)["interrupted"] is True
    fake(stop_after=5)
    text = run(*args, "--tuning-logs", tmp_path)
    assert text.exit_code == 130
    assert "interrupted: 0 of 1 workloads have a record, and 25 of 40 trials" in text.stdout
    assert "the same command goes on from there" in text.stdout
    measurer = fake()
    last = run(*args, "--tuning-logs", tmp_path)
    assert last.exit_code == 0
    assert len(measurer.measured) == 15
    assert "25 trials taken over from an earlier run" in last.stdout


def test_interrupt_before_the_first_trial_says_so_too(tmp_path: Path, fake: Any) -> None:
    fake(stop_after=0)
    result = run("tune", *FLAGS, *ON, "--tuning-logs", tmp_path)
    assert result.exit_code == 130
    assert "interrupted: 0 of 1 workloads have a record; the same command" in result.stdout


def test_record_of_another_te_select_is_tuned_again(tmp_path: Path, fake: Any) -> None:
    tuned(tmp_path, fake)
    for name in (log.RECORDS, log.SESSIONS):
        path = tmp_path / TARGET / name
        path.write_text(path.read_text().replace("bytes_per_thread", "parallel"))
    listed = run("logs", "list", "--tuning-logs", tmp_path)
    assert listed.exit_code == 1
    assert "the knobs differ in parallel" in listed.stderr
    assert tuned(tmp_path, fake)["workloads"][0]["fresh"] is True
    assert run("logs", "list", "--tuning-logs", tmp_path).exit_code == 0
    path.write_text(path.read_text().replace("bytes_per_thread", "parallel"))
    records = tmp_path / TARGET / log.RECORDS
    records.write_text(records.read_text().replace("bytes_per_thread", "parallel"))
    (gone,) = run_json("logs", "prune", "--tuning-logs", tmp_path)["dropped"]
    assert "the knobs differ" in gone


def test_measuring_that_breaks_down_prints_what_was_tuned_and_exits_1(
    tmp_path: Path, fake: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    measurer = fake()
    items = [json.dumps(workload.to_json()) for workload in (FEW, Workload((9,), (9,), ()))]

    def broken(candidates: Any) -> Any:
        if candidates[0].workload != FEW:
            raise te_select.TuningError("no server is left; expected one that serves zen5")
        return FakeMeasurer.measure(measurer, candidates)

    monkeypatch.setattr(measurer, "measure", broken)
    args = ["tune", "--workload", items[0], "--workload", items[1], *ON, "--trials", "2"]
    result = run(*args, "--tuning-logs", tmp_path)
    assert result.exit_code == 1
    assert "select_float32_numpy_c_t_e" in result.stdout
    assert result.stderr == "te-select: error: no server is left; expected one that serves zen5\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([*FLAGS, "--trials", "0"], "Invalid value for '--trials'"),
        ([*FLAGS, "--trials", "-3"], "Invalid value for '--trials'"),
        ([*FLAGS, "--timeout", "0"], "Invalid value for '--timeout'"),
        ([*FLAGS, "--jobs", "0"], "Invalid value for '--jobs'"),
        ([*FLAGS, "--jobs", "9" * 20], "less than or equal to 1024"),
        (["--library", "/nope.so"], "/nope.so is missing; expected a library"),
        (["--library", "/proc"], "/proc does not end in .so"),
        ([*FLAGS, "--suite", "default"], "--library is given; expected one"),
        (["--suite", "all"], "expected one of default, baselines"),
        (["--only", "nothing"], "matches no workload"),
        ([], "no workload is given"),
        ([*FLAGS, "--library", "a.so"], "--library is given; expected one"),
        ([*FLAGS, "--runner", "http://x"], "expected local or rpc://HOST:PORT/KEY"),
        ([*FLAGS, "--runner", "rpc://tracker:9190"], "KEY being what the servers are registered"),
        (["--target", "cuda", *FLAGS], "which has none"),
        ([*FLAGS, "--target", "pentium9"], "target 'pentium9' is not known"),
    ],
)
def test_bad_usage_of_tune_exits_2(tmp_path: Path, args: list[str], message: str) -> None:
    result = run("tune", *args, "--tuning-logs", tmp_path)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_folder_in_the_place_of_a_library_exits_2(tmp_path: Path) -> None:
    (tmp_path / "x.so").mkdir()
    result = run("tune", "--library", tmp_path / "x.so", "--tuning-logs", tmp_path)
    assert result.exit_code == 2, result.output
    assert "x.so is a folder; expected a library" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--tuning-logs", "/proc/none"], "cannot be written"),
        (["--runner", "rpc://127.0.0.1:9/zen5"], "expected python -m tvm.exec.rpc_tracker"),
    ],
)
def test_what_cannot_work_exits_1_with_one_line(
    tmp_path: Path, args: list[str], message: str
) -> None:
    result = run("tune", *FLAGS, "--tuning-logs", tmp_path, *args)
    assert result.exit_code == 1, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_compile_and_inspect_say_which_record_and_why(tmp_path: Path, fake: Any) -> None:
    tuned(tmp_path, fake)
    flags = [*FLAGS, *ON, "--tuning-logs", tmp_path]
    document = run_json("compile", *flags, "-o", tmp_path / "mask.so")
    assert document["kernels"][0]["origin"] == f"tuned:{TARGET}/w4_1024cte"
    result = run("inspect", *flags)
    assert "this access pattern was tuned for x86-64-v4" in result.stdout
    without = run_json("inspect", *FLAGS, *ON, "--tuning-logs", "none")
    assert without["kernels"][0]["origin"] == "default"


def test_logs_list_shows_records_and_exits_1_where_a_line_is_damaged(
    tmp_path: Path, fake: Any
) -> None:
    tuned(tmp_path, fake)
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["record"], row["trials"] > 0) == ("w4_1024cte", True)
    assert row["microseconds"] == pytest.approx(125, rel=0.01)
    assert row["default_microseconds"] == pytest.approx(250, rel=0.01)
    assert row["gain"] == "2.00x"
    assert "w4_1024cte" in run("logs", "list", "--tuning-logs", tmp_path).stdout
    with (tmp_path / TARGET / log.RECORDS).open("a") as file:
        file.write("torn")
    result = run("logs", "list", "--tuning-logs", tmp_path)
    assert result.exit_code == 1
    assert "line 2 is left out" in result.stderr
    assert "w4_1024cte" in result.stdout


def test_logs_best_says_what_compile_would_take(tmp_path: Path, fake: Any) -> None:
    tuned(tmp_path, fake)
    near = ["--cond", "1025", "--then", "1025", "--else", "1025"]
    (found,) = run_json("logs", "best", *near, *ON, "--tuning-logs", tmp_path)
    assert found["origin"] == f"nearest:{TARGET}/w4_1024cte"
    assert found["config"]["unroll"] == 8
    (none,) = run_json("logs", "best", "--cond", "9", "--then", "9", "--else", "", *ON,
                       "--tuning-logs", tmp_path)  # fmt: skip
    assert none["origin"] == "default"
    assert none["config"] == te_select.compile(Workload((9,), (9,), ()), tuning_logs=False).config
    assert "w4_1024cte" in run("logs", "best", *near, *ON, "--tuning-logs", tmp_path).stdout


def test_logs_travel_by_export_and_import(tmp_path: Path, fake: Any) -> None:
    tuned(tmp_path / "a", fake)
    exported = run_json("logs", "export", tmp_path / "b", "--tuning-logs", tmp_path / "a")
    assert exported["taken"] == [f"{TARGET}/w4_1024cte"]
    imported = run("logs", "import", tmp_path / "b", "--tuning-logs", tmp_path / "c")
    assert imported.exit_code == 0
    assert "1 records copied" in imported.stdout
    read = [log.read(tmp_path / name / TARGET).entries for name in "abc"]
    assert read[0] == read[1] == read[2]


def test_logs_prune_says_what_is_gone(tmp_path: Path, fake: Any) -> None:
    tuned(tmp_path, fake)
    assert run("logs", "prune", "--tuning-logs", tmp_path).stdout == "nothing to drop\n"
    with (tmp_path / TARGET / log.RECORDS).open("a") as file:
        file.write("torn")
    (gone,) = run_json("logs", "prune", "--tuning-logs", tmp_path)["dropped"]
    assert "line 2" in gone


@pytest.mark.parametrize(
    "args",
    [
        ["list", "--tuning-logs", "missing"],
        ["best", *FLAGS, "--tuning-logs", "missing"],
        ["export", "to", "--tuning-logs", "missing"],
        ["import", "missing", "--tuning-logs", "to"],
        ["prune", "--tuning-logs", "missing"],
    ],
)
def test_missing_folder_exits_2_with_one_line(args: list[str]) -> None:
    result = run("logs", *args)
    assert result.exit_code == 2
    assert "'missing' is no folder; expected one" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["import", "a"], "Missing option '--tuning-logs'"),
        (["best"], "no workload is given"),
        (["best", *FLAGS, "--target", "foo"], "target 'foo' is not known"),
        (["best", *FLAGS, "--tuning-logs", "none"], "expected a folder"),
        (["drop"], "expected one of list, best, export, import, prune"),
    ],
)
def test_bad_usage_of_logs_exits_2(args: list[str], message: str) -> None:
    result = run("logs", *args)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_panel_shows_trials_best_default_roof_failures_and_time_left() -> None:
    from rich.console import Console

    display = Display(3)
    display.begin(4e11)
    display(Progress(BIG, done=1, total=64))
    progress = Progress(BIG, 16, 64, 2, "it hung: 30 s", default=4e-3, best=2e-3)
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(display.panel(progress))
    text = console.export_text()
    for part in ("1/3", "16/64", "4 ms", "2 ms", "2.00x", "of the roof", "2; the first: it hung"):
        assert part in text
    assert "for this workload" in text
