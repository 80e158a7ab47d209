"""``te-select logs``: what it shows of records, copies and drops."""

import shlex
from json import dumps, loads

from pytest import approx, mark

import te_select
from te_select.records import log
from tests.support import flat, flat_and_scalar, masked_rows
from tests.support.cli import refused, run, run_json
from tests.support.machines import on_x86_64
from tests.support.tuning import FLAGS, ON, TARGET, add, flags_of, tuned

NINE = flat_and_scalar(9)


def test_logs_list_exits_1_if_a_line_is_damaged(tmp_path, fake):
    tuned(tmp_path, fake)
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["record"], row["outcome"], row["trials"] > 0) == ("w4_1024cte", "2.00x", True)
    times = row["microseconds"], row["default_microseconds"]
    assert times == approx((125, 250), rel=0.01)
    shown = run("logs", "list", "--tuning-logs", tmp_path).stdout
    assert "  125.0 " in shown and " \n" not in shown
    with (tmp_path / TARGET / log.SESSIONS).open("a") as file:
        file.write("torn")
    result = run("logs", "list", "--tuning-logs", tmp_path)
    assert result.exit_code == 1
    assert "line 2 is left out" in result.stdout
    assert "w4_1024cte" in result.stdout


def test_record_that_cannot_be_used_is_named_in_text_and_json(tmp_path, fake):
    tuned(tmp_path, fake)
    path = tmp_path / TARGET / log.SESSIONS
    path.write_text(path.read_text().replace("bytes_per_thread", "parallel"))
    said = f"{TARGET}/w4_1024cte cannot be used: its config does not fit the schedule: the knobs"
    text = run("logs", "list", "--tuning-logs", tmp_path)
    as_json = run("logs", "list", "--tuning-logs", tmp_path, "--json")
    assert text.exit_code == as_json.exit_code == 1
    (complaint,) = loads(as_json.stdout)["damaged"]
    assert complaint.startswith(said) and complaint.endswith("; tune it again")
    assert f"damaged\n  {complaint}\n" in text.stdout
    assert run("logs", "import", tmp_path, "--tuning-logs", tmp_path / "to").exit_code == 1


@on_x86_64
def test_logs_best_says_what_compile_would_take(tmp_path, fake):
    tuned(tmp_path, fake)
    near = flags_of(flat(1025))
    (found,) = run_json("logs", "best", *near, *ON, "--tuning-logs", tmp_path)
    assert found["origin"] == f"nearest:{TARGET}/w4_1024cte"
    assert found["config"]["unroll"] == 8
    (none,) = run_json("logs", "best", *flags_of(NINE), *ON, "--tuning-logs", tmp_path)
    assert none["origin"] == "default"
    assert none["config"] == te_select.compile(NINE, tuning_logs=False).config
    assert "w4_1024cte" in run("logs", "best", *near, *ON, "--tuning-logs", tmp_path).stdout


def test_logs_travel_by_export_and_import(tmp_path, fake):
    tuned(tmp_path / "a", fake)
    exported = run_json("logs", "export", tmp_path / "b", "--tuning-logs", tmp_path / "a")
    assert exported["taken"] == [f"{TARGET}/w4_1024cte"]
    imported = run("logs", "import", tmp_path / "b", "--tuning-logs", tmp_path / "c")
    assert imported.exit_code == 0
    assert f"taken\n  {TARGET}/w4_1024cte\n" in imported.stdout
    read = [log.read(tmp_path / name / TARGET).entries for name in "abc"]
    assert read[0] == read[1] == read[2]


@mark.parametrize(
    "args, message",
    [
        (["list", "--tuning-logs", "missing"], "missing"),
        (["best", *FLAGS, "--tuning-logs", "missing"], "missing"),
        (["export", "to", "--tuning-logs", "missing"], "missing"),
        (["import", "missing", "--tuning-logs", "to"], "'missing' does not exist"),
        (["prune", "--tuning-logs", "missing"], "missing"),
        (["best"], "no workload is given"),
        (["best", *FLAGS, "--target", "foo"], "target 'foo' is not known"),
        (["drop"], "expected one of list, best, export, import, prune"),
    ],
)
def test_bad_usage_of_logs_exits_2_with_one_line(args, message):
    assert message in refused("logs", *args)


def test_import_and_prune_change_ones_own_folder_by_default(tmp_path, fake, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    tuned(tmp_path / "theirs", fake)
    own = tmp_path / "home" / "te-select" / "tuning_logs"
    assert run_json("logs", "import", tmp_path / "theirs")["to"] == str(own)
    assert run("logs", "prune").stdout == "dropped  []\n"
    with (own / TARGET / log.SESSIONS).open("a") as file:
        file.write("torn")
    (gone,) = run_json("logs", "prune")["dropped"]
    assert str(own) in gone and "line 2" in gone


def commands_of(error):
    """The commands that an error of the gate names."""
    commands = error.rpartition("expected those of: ")[2].split(" && ")
    return [shlex.split(each)[1:] for each in commands]


def test_commands_of_the_gate_make_it_pass(tmp_path, fake):
    seen = {"conds": 8, "true": 4, "runs": 4, "seconds": 1.0, "sizes": {}}
    kernels = {dumps(each.to_json()): seen for each in (flat(1000), flat(5000))}
    whole = {"kernels": kernels, "where": {"w4 n:ct": seen}}  # kernels of where() need none
    (tmp_path / "seen.json").write_text(dumps(whole))
    logs = tmp_path / "logs"
    logs.mkdir()
    add(logs, flat(5000))
    gate = ["logs", "best", "--captured", tmp_path / "seen.json", *ON, "--tuning-logs", logs]
    said = refused(*gate, "--require-record", code=1)
    assert "no record of its own for 1 of 2 workloads: " in said
    assert f"{flat(1000)} on {TARGET} (default)" in said
    assert str(flat(5000)) not in said
    for command in commands_of(said):
        fake()
        assert run(*command, "--trials", "2").exit_code == 0
    found = run_json(*gate, "--require-record")
    assert [each["origin"].partition(":")[0] for each in found] == ["tuned", "tuned", "default"]


def test_gate_names_a_file_of_workloads_as_it_was_given(tmp_path, fake):
    workloads = [flat(1000), flat(5000), masked_rows("n", 512)]
    file = tmp_path / "all.json"
    file.write_text(dumps([each.to_json() for each in workloads]))
    logs = tmp_path / "logs"
    logs.mkdir()
    add(logs, flat(5000))
    given = ["--workloads", file, *ON, "--tuning-logs", logs, "--require-record"]
    for gate in (["logs", "best", *given], ["compile", *given, "-o", tmp_path / "lib.so"]):
        (command,) = commands_of(run(*gate).stderr)
        assert command[-4:] == ["--workloads", str(file), "--size", "n=1:64"]
        assert "--workload" not in command
    fake()
    assert run(*command, "--trials", "2").exit_code == 0
    assert run("logs", "best", *given).exit_code == 0
    sized = ["--size", "n=8"]
    assert commands_of(run("logs", "best", *given, *sized).stderr)[0][-2:] == sized


@mark.parametrize("trials, kept", [(5, True), (1, False)])
def test_gate_says_why_a_record_is_unsure(tmp_path, trials, kept):
    busy = "other programs used 1.00 cores meanwhile"
    add(tmp_path, flat(1000), said={"unsure": busy, "trials": trials})
    add(tmp_path, flat(5000))
    gate = ["logs", "best", *flags_of(flat(1000)), *ON, "--tuning-logs", tmp_path]
    said = run(*gate, "--require-record").stderr
    keeps = "; --accept-unsure keeps it" if kept else ""
    assert f" on {TARGET} (its record is unsure: {busy}{keeps}); expected those of" in said


def test_command_for_named_dims_has_their_sizes(tmp_path, fake):
    named = masked_rows("n", 512)
    gate = ["logs", "best", *flags_of(named), *ON, "--tuning-logs", tmp_path]
    fake()
    run("tune", *flags_of(named), *ON, "--all", "--trials", "2", "--tuning-logs", tmp_path)
    assert run(*gate, "--require-record", "near").exit_code == 0
    (command,) = commands_of(run(*gate, "--require-record").stderr)
    assert command[-2:] == ["--size", "n=1:64"]
    fake()
    run(*command, "--trials", "2")
    assert run(*gate, "--require-record").exit_code == 0
