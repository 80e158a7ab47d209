"""``te-select tune``: what it prints and records, and its exit codes."""

import shlex
from json import dumps, loads

import typer
from pytest import approx, mark

import te_select
from te_select.cli import tune as tune_module
from te_select.cli.verbs import app
from te_select.records import folders, log
from tests.support import flat_and_scalar
from tests.support.cli import refused, run, run_json
from tests.support.machines import on_x86_64
from tests.support.tuning import (
    BIG,
    FEW,
    FLAGS,
    ON,
    SMALL,
    TARGET,
    FakeMeasurer,
    by_unroll,
    flags_of,
    only,
    tuned,
)

NINE = flat_and_scalar(9)


def test_busy_cores_of_a_run_are_the_most_of_what_it_measured(tmp_path, fake, monkeypatch):
    said = iter([0.1, 0.14, 0.1, 0.02, 0.12, 0.05, 0.03, 0.05, 0.0, 1.25])  # whole, finals
    monkeypatch.setattr("te_select.timing.cores.Watch.others", lambda _: next(said))
    flags = flags_of(SMALL, FEW, NINE, flat_and_scalar(8))
    fake()
    common = ["tune", *ON, "--trials", "2", "--tuning-logs", tmp_path]
    assert run_json(*common, *flags[:2])["busy_cores"] == 0.14
    document = run_json(*common, *flags)
    assert [each["fresh"] for each in document["workloads"]] == [False, True, True, True]
    assert document["busy_cores"] == 0.12
    shown = run(*common, *FLAGS, "--force").stdout
    assert "unsure: other programs used 1.25 cores meanwhile" in shown
    told = "unsure: 1 of 1, which will not be used; earlier records are kept\n"
    assert shown.endswith(
        f"{told}on idle cores and with more time, the same command tries them again\n"
    )
    assert "\nrecorded in" not in shown


def test_tune_prints_what_it_found_and_records_it(tmp_path, fake):
    fake()
    result = run("tune", *FLAGS, *ON, "--trials", "80", "--tuning-logs", tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("1 of 1 workloads faster than the default: 2.00x at most\n")
    assert "select_float32_numpy_c1024_t1024_e1024" in result.stdout
    assert "2.00x" in result.stdout
    assert f"recorded in {tmp_path / TARGET / folders.SESSIONS}\n" in result.stdout
    assert f"te-select compile --tuning-logs {tmp_path} " in result.stdout
    assert [entry.key for entry in log.read(tmp_path / TARGET).entries] == ["w4_1024cte"]


@mark.parametrize(
    "text, runner, expected",
    [
        (
            "znver4, znver5",
            "rpc://h:9190/{target}",
            [("znver4", "rpc://h:9190/znver4"), ("znver5", "rpc://h:9190/znver5")],
        ),
        ("cuda:sm_80,sm_90", "local", [("cuda:sm_80,sm_90", "local")]),
        ("aarch64:a,aarch64:b", "local", [("aarch64:a", "local"), ("aarch64:b", "local")]),
        ('{"kind": "llvm", "mcpu": "a"}', "local", [('{"kind": "llvm", "mcpu": "a"}', "local")]),
    ],
)
def test_list_of_targets_is_a_session_each(text, runner, expected):
    assert tune_module._targets(text, runner) == expected


def test_each_target_has_records_of_its_own(tmp_path, fake):
    fake()
    both = ["--target", f"x86-64-v3,{TARGET}", "--trials", "2", "--tuning-logs", tmp_path]
    document = run_json("tune", *FLAGS, *both)
    names = {each["name"]: each["record"]["name"] for each in document["workloads"]}
    assert names == {
        f"select_float32_numpy_c1024_t1024_e1024 on {target}": f"{target}/w4_1024cte"
        for target in ("x86-64-v3", TARGET)
    }


@mark.parametrize(
    "flags, roof, said",
    [
        ([], 1.6e12, "of the roof; --all tunes it"),
        (["--minutes", "0"], 1e11, "the time was over"),
        (["--all"], 1.6e12, ""),
    ],
)
def test_what_is_passed_over_exits_0(tmp_path, fake, monkeypatch, flags, roof, said):
    fake()
    monkeypatch.setattr("te_select.tuning.agenda.roof_of", lambda *_: roof)
    args = ["tune", *flags_of(BIG), *ON, "--trials", "2", "--tuning-logs", tmp_path, *flags]
    result = run(*args)
    assert (result.exit_code, said in result.stdout) == (0, True)
    (found,) = run_json(*args)["workloads"]
    assert said in found["passed_over"] and found["error"] is None
    assert bool(found["record"]) == (not said)
    assert (tmp_path / TARGET / folders.RECORDS).exists() == (not said)


def test_knobs_are_told_and_drawn(tmp_path, fake):
    fake()
    picture = tmp_path / "new" / "knobs.svg"
    args = ["tune", *FLAGS, *ON, "--tuning-logs", tmp_path, "--plot", picture]
    result = run(*args, "--trials", "80", "--patient")
    assert result.stdout.endswith(f"drawn in {picture}\n")
    assert "default -> other" in result.stdout
    assert picture.stat().st_size > 1000
    picture.unlink()
    (again,) = run_json(*args)["workloads"]
    assert again["fresh"] is False
    assert again["knobs"][0]["name"] == "unroll"
    assert again["knobs"][0]["gain"] == approx(2.0, rel=0.05)
    assert again["knobs"][0]["tried"]["8"] < again["knobs"][0]["tried"]["4"]
    assert picture.stat().st_size > 1000


def test_ranges_of_sizes_are_those_of_the_names(tmp_path, fake):
    measurer = fake()
    flags = ["--cond", "b,1", "--then", "b,512", "--else", "", "--size", "b=3:300"]
    args = ["tune", *flags, *ON, "--trials", "2", "--tuning-logs", tmp_path]
    (found,) = run_json(*args)["workloads"]
    assert found["record"]["sizes"] == "b=3:300"
    assert {each.point.out_shape[0] for each in measurer.measured} == {3, 30, 300}
    fake()
    entry = log.read(tmp_path / TARGET).entries[0]
    words = shlex.split(entry.session["command"])
    assert "b=3:300" in words
    assert run(*words[1:]).exit_code == 0  # the recorded command finds its record
    (best,) = run_json("logs", "best", *flags[:-2], *ON, "--tuning-logs", tmp_path)
    assert "sizes b=3:300" in best["why"]


OF_WORKLOADS = {
    "--cond", "--then", "--else", "--dtype", "--op", "--auto-broadcast", "--axis", "--workloads",
    "--suite", "--only", "--library", "--model", "--size", "--where", "--captured",
    "--again", "--all", "--minutes", "--plot", "--profile",
}  # fmt: skip
"""Flags for which the command of a record has ``--workload``, or nothing: it is of one workload."""


def test_recorded_command_has_every_flag_that_was_given(tmp_path, fake):
    text = dumps(SMALL.to_json())
    given = {
        "--workload": (text,),
        "--target": (TARGET,),
        "--tuning-logs": (str(tmp_path / "own logs"),),
        "--trials": ("3",),
        "--runner": ("rpc://tracker:9190/kind",),
        "--timeout": ("12.5",),
        "--seed": ("5",),
        "--force": (),
        "--patient": (),
        "--effort": ("quick",),
        "--fix": ("unroll=4",),
        "--accept-unsure": (),
        "--density": ("0",),
        "--block": ("64",),
    }
    tune = typer.main.get_command(app).commands["tune"]  # type: ignore[attr-defined]
    flags = {param.opts[-1] for param in tune.params} - OF_WORKLOADS - {"--help", "--json"}
    # A new flag belongs into the command, or among those of workloads.
    assert flags == set(given)
    words = [word for flag, values in given.items() for word in (flag, *values)]
    fake()
    assert run("tune", *words).exit_code == 0
    entry = only(tmp_path / "own logs" / TARGET)
    recorded = shlex.split(entry.session["command"])
    assert recorded[:2] == ["te-select", "tune"]

    def read(flags):
        return tune.make_context("tune", flags).params

    assert read(recorded[2:]) == read(words)
    tuned(tmp_path, fake)
    entry = only(tmp_path / TARGET)
    defaults = {"--force", "--seed", "--timeout", "--effort", "--density", "--block"}
    assert not defaults & set(shlex.split(entry.session["command"]))


def test_untunable_workload_exits_1_and_others_are_tuned(tmp_path, fake):
    fake(lambda candidate: None if candidate.workload == FEW else by_unroll(candidate))
    args = ["tune", *flags_of(FEW, NINE), *ON, "--trials", "2"]
    result = run(*args, "--tuning-logs", tmp_path, "--json")
    assert result.exit_code == 1
    first, second = loads(result.stdout)["workloads"]
    assert "the default config failed: it crashed: SIGSEGV" in first["error"]
    assert second["record"]["trials"] == 2
    assert "the default config failed" in run(*args, "--tuning-logs", tmp_path).stdout


def test_interrupt_keeps_what_was_measured_and_exits_130(tmp_path, fake):
    args = ["tune", *flags_of(BIG), *ON, "--trials", "40", "--all", "--patient"]
    args += ["--tuning-logs", tmp_path]
    for after, said in (
        (0, "interrupted: 0 of 1 workloads have a record; the same command goes on from there"),
        (20, "interrupted: 0 of 1 workloads have a record, and 20 of 40 trials"),
    ):
        fake(stop_after=after)
        text = run(*args)
        assert (text.exit_code, said in text.stdout) == (130, True)
    fake(stop_after=6)
    result = run(*args, "--json")
    assert (result.exit_code, loads(result.stdout)["interrupted"]) == (130, True)
    fake()
    assert "24 trials taken over from an earlier run" in run(*args).stdout


@mark.parametrize("flags", [[], ["--json"]])
def test_broken_measuring_prints_what_was_tuned_and_exits_1(tmp_path, fake, monkeypatch, flags):
    measurer = fake()

    def broken(candidates):
        # Two defaults, and a config of the first that is tuned.
        if candidates and len(measurer.measured) == 3:
            raise te_select.TuningError("no server is left; expected one that serves zen5")
        return FakeMeasurer.measure(measurer, candidates)

    monkeypatch.setattr(measurer, "measure", broken)
    args = ["tune", *flags_of(FEW, NINE), *ON, "--trials", "2"]
    result = run(*args, "--tuning-logs", tmp_path, *flags)
    assert result.exit_code == 1
    assert len(log.read(tmp_path / TARGET).entries) == 1
    assert ("recorded in" in result.stdout) is (not flags)
    said = result.stdout if flags else result.stderr
    assert "no server is left; expected one that serves zen5" in said


@mark.parametrize(
    "args, message",
    [
        ([*FLAGS, "--trials", "0"], "trials is 0; expected an int of 1"),
        (["--library", "/nope.so"], "/nope.so is missing; expected one"),
        ([*FLAGS, "--suite", "default"], "--library is given; expected one"),
        (["--where", "w4 n:te", "--library", "a.so"], "--captured and --library is given"),
        (["--where", "w4 n:te", "--captured", "a.json"], "--captured and --library is given"),
        (["--where", "w4 n:no"], "'w4 n:no' is no kernel; expected one, such as 'w4 n:cte'"),
        ([], "no workload is given"),
        ([*FLAGS, "--runner", "rpc://tracker:9190"], "KEY being what the servers are registered"),
        ([*FLAGS, "--target", "znver4,pentium9"], "target 'pentium9' is not known"),
        ([*FLAGS, "--size", "n=3:9"], "--size n names no dim"),
        (["--cond", "n", "--then", "n", "--else", "n", "--size", "n=9:3"], "'n=9:3': exp"),
        ([*FLAGS, "--minutes", "-1"], "Invalid value for '--minutes'"),
        ([*FLAGS, "--plot", "knobs.txt"], "ends in none of .png, .svg, .pdf"),
    ],
)
def test_bad_usage_of_tune_exits_2(tmp_path, fake, args, message):
    fake()
    assert message in refused("tune", *args, "--tuning-logs", tmp_path)


def test_what_cannot_work_exits_1_with_one_line(fake):
    fake()
    assert "cannot be written" in refused("tune", *FLAGS, "--tuning-logs", "/proc/none", code=1)


@on_x86_64
def test_compile_and_inspect_say_which_record_and_why(tmp_path, fake):
    tuned(tmp_path, fake)
    flags = [*FLAGS, *ON, "--tuning-logs", tmp_path]
    document = run_json("compile", *flags, "-o", tmp_path / "mask.so")
    assert document["kernels"][0]["origin"] == f"tuned:{TARGET}/w4_1024cte"
    result = run("inspect", *flags)
    assert "this access pattern was tuned for x86-64-v4" in result.stdout
    without = run_json("inspect", *FLAGS, *ON, "--tuning-logs", "none")
    assert without["kernels"][0]["origin"] == "default"


@mark.parametrize(
    "flags",
    ["", "--no-profile", "--json", "--target x86-64-v3", "--runner rpc://tracker:9190/kind"],
)
def test_profile_of_this_machine_is_measured_first(tmp_path, fake, monkeypatch, flags):
    fake()
    monkeypatch.setattr(
        "te_select.tuning.options.measure_profile", lambda: "the profile was measured"
    )
    result = run("tune", *FLAGS, "--trials", "1", "--tuning-logs", tmp_path, *flags.split())
    assert result.stdout.startswith("the profile was measured\n") is (flags == "")


def test_function_measures_the_profile_if_asked(tmp_path, fake, monkeypatch):
    asked = []
    fake()
    monkeypatch.setattr("te_select.tuning.tune.measure_profile", lambda: asked.append(True))
    te_select.tune(SMALL, TARGET, trials=1, tuning_logs=tmp_path)
    te_select.tune(SMALL, TARGET, trials=1, tuning_logs=tmp_path, profile=True, force=True)
    assert asked == [True]


@mark.parametrize("minutes, seconds", [((), 240.0), (("--minutes", "3"), 180.0)])
@mark.parametrize("every", [False, True])
def test_agenda_gets_what_the_flags_say(tmp_path, fake, monkeypatch, minutes, seconds, every):
    fake()
    asked = []

    class Recorder:
        def __init__(self, todo, **how):
            asked.append(([job.session.options.trials for job in todo], how))

        def run(self, *_):
            return iter(())

    monkeypatch.setattr("te_select.tuning.agenda.Agenda", Recorder)
    passed_over = ["--all"] if every else []
    run(
        "tune",
        *flags_of(SMALL, FEW),
        *minutes,
        *passed_over,
        "--trials",
        "7",
        "--tuning-logs",
        tmp_path,
    )
    again = bool(minutes)
    assert asked == [([7, 7], {"every": every, "seconds": seconds, "again": again})]
