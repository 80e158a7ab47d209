"""Where the workloads of a verb come from: suites, libraries, captures."""

from json import dumps

import pytest

import te_select
from te_select.operator import family
from te_select.records import folders
from tests.support import flat
from tests.support.cli import refused, run, run_json
from tests.support.tuning import ON, SMALL, TARGET


def test_suites_and_libraries_are_tuned_by_name(tmp_path, fake, two):
    fake()
    common = [*ON, "--trials", "2", "--tuning-logs", tmp_path]
    run("tune", "--only", "scalar", *common)
    document = run_json("tune", "--suite", "default", "--only", "scalar*", *common)
    found = [(each["name"], each["fresh"]) for each in document["workloads"]]
    assert found == [("scalar", False), ("scalar-sides", True), ("scalar-cond", True)]
    document = run_json("tune", "--library", two, *common)
    assert {each["name"] for each in document["workloads"]} == set(te_select.load(two))


def seen(seconds, share, length, **sizes):
    """What a capture says of one kernel: its seconds, and conds with runs of a length."""
    conds = {"conds": 1000 * length, "true": round(1000 * length * share)}
    return {"seconds": seconds, **conds, "runs": 1000, "sizes": sizes}


def test_what_a_program_asked_for_is_tuned_with_its_conds(tmp_path, fake, monkeypatch):
    named, empty = flat("n"), flat("m")
    whole = {
        "kernels": {
            dumps(SMALL.to_json()): seen(2.0, 0.88, 64),
            dumps(named.to_json()): seen(9.0, 0.5, 1, n=[10, 1000]),
            dumps(empty.to_json()): seen(1.0, 0.5, 0, m=[0, 9]),  # of no call a cond was seen
        },
        "where": {"w4 n:ct": seen(4.0, 0.5, 1)},
    }
    (tmp_path / "seen.json").write_text(dumps(whole))
    measurer = fake()
    given = ["--captured", tmp_path / "seen.json", *ON, "--trials", "2"]
    document = run_json("tune", *given, "--all", "--tuning-logs", tmp_path / "logs")
    found = {each["name"]: each["record"] for each in document["workloads"]}
    assert set(found) == {named.name, "w4 n:ct", SMALL.name, empty.name}
    assert (found[empty.name]["sizes"], found[empty.name]["cond"]) == ("m=1:9", "")
    assert found[named.name]["sizes"] == "n=10:1000"
    assert found[SMALL.name]["cond"] == "90 % true, in blocks of 16"
    assert measurer.measured[0].workload == named
    assert {each.workload for each in measurer.measured if each.of_family} == {
        family.kernels()["w4 n:ct"]
    }
    listed = run_json("logs", "list", "--tuning-logs", tmp_path / "logs" / "where")["records"]
    assert len(listed) == 1
    fake()
    shown = run("tune", *given, "--tuning-logs", tmp_path / "logs").stdout
    assert shown.endswith(f"recorded in {tmp_path}/logs/where/{TARGET}/{folders.SESSIONS}\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    shown = run("tune", "--where", "w4 n:ct", *ON, "--trials", "2").stdout
    assert shown.endswith("te-select where build uses them\n")
    assert "te-select compile" not in shown


@pytest.mark.parametrize(
    "text, said",
    [
        ("[1]", "holds [1]; expected what a program wrote"),
        ('{"kernels": {}, "where": {"w9 n:cte": {}}}', "'w9 n:cte' is no kernel"),
        ('{"kernels": {"{}": {}}, "where": {}}', "expected what a program wrote"),
        (
            f'{{"kernels": {{"{"[" * 5000}": {{}}}}, "where": {{}}}}',
            "expected what a program wrote",
        ),
        (b"\xff", "is not JSON"),
        (None, "seen.json is missing; expected what a program wrote"),
    ],
)
def test_file_that_is_no_capture_exits_2(tmp_path, text, said):
    file = tmp_path / "seen.json"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert said in refused("tune", "--captured", file, "--tuning-logs", tmp_path / "logs")
    assert not (tmp_path / "logs").exists()
