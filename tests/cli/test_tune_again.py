"""``te-select tune --again``: records of other versions that still win are taken over."""

from json import loads

from te_select.records import log, writer
from tests.support import flat
from tests.support.cli import refused, run
from tests.support.tuning import (
    FEW,
    FLAGS,
    ON,
    SMALL,
    TARGET,
    alike,
    edit,
    flags_of,
    make,
    of_another_tvm,
)


def test_old_records_that_still_win_are_taken_over(tmp_path, fake, monkeypatch):
    """Those of which the knobs are gone, or the line is damaged, are failures of their own.

    What was unsure is not tried.
    """
    large = [flat(n) for n in (4096, 9000)]
    args = ["tune", *flags_of(SMALL, *large), *ON]
    fake()
    run(*args, "--trials", "80", "--tuning-logs", tmp_path)
    tuned = sorted(log.read(tmp_path / TARGET).entries, key=lambda entry: entry.key)
    old = [of_another_tvm(entry) for entry in tuned]
    writer.drop(tmp_path / TARGET, log.read(tmp_path / TARGET).entries)
    writer.put(tmp_path / TARGET, [*old, of_another_tvm(make(FEW, unsure="busy"))])

    def change(lines):
        lines[1] = lines[1].replace("unroll", "unrolled")
        lines[2] = lines[2].replace('"ranges": []', '"ranges": [["n", 1, Infinity]]')

    edit(tmp_path / TARGET, change)
    again = ["tune", "--again", *ON, "--tuning-logs", tmp_path, "--json"]
    fake(alike)
    with monkeypatch.context() as patch:
        patch.setattr("te_select.timing.cores.Watch.others", lambda _: 2.0)
        assert loads(run(*again).stdout)["workloads"][0]["record"]["unsure"]
    first, second, third = loads(run(*again).stdout)["workloads"]
    assert first["record"] is None and "not taken over" in first["passed_over"]
    assert "the knobs differ in " in second["error"]
    assert third["error"] == "its line does not say what was tuned; tune it again"
    measurer = fake()
    result = run(*again)
    assert result.exit_code == 1  # of the one whose knob is gone
    first = loads(result.stdout)["workloads"][0]
    assert first["record"]["config"]["unroll"] == 8
    assert len(measurer.measured) == 2  # the default, and the old winner
    assert measurer.jobs == 1  # one builds at a time, so that one worker imports tvm
    taken = {entry.key: entry.tvm for entry in log.read(tmp_path / TARGET).entries}
    assert taken["w4_1024cte"] != "0.1" and taken["w4_4096cte"].startswith("0.1")
    assert run(*again[:-2], tmp_path / "new").stdout == "nothing to tune\n"
    for words in (FLAGS, ["--only", "x"], ["--where", "x"]):
        said = refused("tune", "--again", *words, *ON, "--tuning-logs", tmp_path)
        assert "leave the workloads out" in said


def test_record_of_this_tvm_gives_way_to_a_default_that_wins(tmp_path, fake):
    fake()
    run("tune", *flags_of(SMALL), *ON, "--trials", "80", "--tuning-logs", tmp_path)
    (tuned,) = log.read(tmp_path / TARGET).entries
    writer.put(tmp_path / TARGET, [of_another_tvm(tuned, tuned.tvm)])
    fake(alike)
    assert "not taken over" in run("tune", "--again", *ON, "--tuning-logs", tmp_path).stdout
    (left,) = log.read(tmp_path / TARGET).entries
    assert not tuned.default_won and left.default_won
