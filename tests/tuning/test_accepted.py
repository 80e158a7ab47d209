"""Outcomes that are unsure and that a user accepts: who uses them, and what replaces them."""

import pytest

import te_select
from te_select.records import doubt, folders, log, lookup, manage
from te_select.records.folders import SHIPPED
from tests.support.cli import run_json
from tests.support.tuning_fakes import FEW, SMALL, FakeMeasurer, flat
from tests.support.tuning_records import V4, make

TARGET = V4.name
SAID = "other programs used 1.00 cores meanwhile"


def entry_of(folder):
    (entry,) = log.read(folder / TARGET).entries
    return entry


def test_accepted_winner_is_recorded_and_compiled_with(run, tmp_path):
    record = run(busy=1.0, accept_unsure=True)
    assert (record.unsure, record.accepted, record.config["unroll"]) == ("", SAID, 8)
    assert (entry_of(tmp_path).accepted, entry_of(tmp_path).edited) == (SAID, False)
    assert "--accept-unsure" in entry_of(tmp_path).session["command"]
    found = lookup.find(SMALL, V4, tmp_path)
    assert found.origin == f"tuned:{TARGET}/w4_1024cte" and found.config.unroll == 8
    assert found.why.endswith(f"configs (unsure, and accepted: {SAID})")
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["outcome"], row["accepted"], row["unsure"]) == ("2.00x, accepted", SAID, "")


def test_default_that_won_is_accepted_too(run, tmp_path):
    record = run(busy=1.0, accept_unsure=True, measurer=FakeMeasurer(flat))
    assert record.default_won and record.accepted == SAID
    assert lookup.find(SMALL, V4, tmp_path).origin.startswith("tuned:")


def test_default_that_met_no_other_config_is_not_accepted(run, tmp_path):
    def default_alone(candidate):
        return 1e-3 if candidate.config == run.measurer.measured[0].config else None

    for measurer, trials in ((FakeMeasurer(), 1), (FakeMeasurer(default_alone), 9)):
        record = run(trials=trials, accept_unsure=True, measurer=measurer)
        assert (record.trials, record.unsure, record.accepted) == (trials, doubt.ALONE, "")
    assert lookup.find(SMALL, V4, tmp_path).origin == "default"


def test_only_config_of_a_space_is_sure(run):
    record = run(FEW, fixed={"vector_bytes": 64}, accept_unsure=True)
    assert (record.trials, record.unsure, record.accepted) == (1, "", "")


def test_accepted_record_is_tuned_again_until_it_is_sure(run, tmp_path):
    run(busy=1.0, accept_unsure=True)
    run(busy=1.0, accept_unsure=True)
    assert run.measurer.measured == []  # who accepts it once accepts it again
    assert run(busy=1.0).unsure and entry_of(tmp_path).accepted
    sure = run()
    assert run.measurer.measured and (sure.unsure, sure.accepted) == ("", "")
    assert entry_of(tmp_path).accepted == ""
    assert run(busy=1.0, accept_unsure=True, force=True).accepted
    assert entry_of(tmp_path).accepted == ""  # a sure one stays


@pytest.mark.parametrize("better", [False, True])
def test_accepted_record_is_exported_but_not_as_better(run, tmp_path, better):
    run(busy=1.0, accept_unsure=True)
    merged = manage.merge(tmp_path, tmp_path / "to", better=better)
    said = f"{TARGET}/w4_1024cte: "
    assert bool(merged.taken) == (not better)
    assert merged.accepted == ([] if better else [said + SAID])
    assert merged.left_out == ([f"{said}unsure, and accepted: {SAID}"] if better else [])
    assert manage.prune(tmp_path) == []


def test_what_is_trusted_more_replaces_what_is_trusted_less():
    sure, accepted, unsure = (
        make(SMALL, seconds, **said)
        for seconds, said in ((3e-3, {}), (2e-3, {"accepted": "a"}), (1e-3, {"unsure": "b"}))
    )
    order = [unsure, accepted, sure]
    for rules in (doubt.may_replace, doubt.is_better):
        for i, new in enumerate(order):
            assert [rules(new, old) for old in order if old is not new] == [
                i > j for j in range(3) if j != i
            ]


def test_kernels_of_where_go_by_accepted_records(tmp_path):
    """Their key has what their build would take."""
    place = tmp_path / TARGET
    te_select.records.writer.put(place, [make(SMALL, accepted=SAID)])
    assert len(folders.contents([tmp_path], without=doubt.is_line_unsure)) > 1


def test_no_record_that_is_shipped_is_unsure():
    for place in folders.of_targets(SHIPPED):
        assert {doubt.trust(entry) for entry in log.read(place).entries} == {2}


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        (0.1, "other programs use 0.10 cores"),
        (1.14, "use 1.14 cores: unless they stop, only configs that are 3.28x faster than"),
    ],
)
def test_outlook_tells_which_gains_will_be_sure(busy, said):
    assert said in doubt.outlook(busy)
    assert ("--accept-unsure" in doubt.outlook(busy)) == (busy > doubt.BUSY)
    kept = doubt.outlook(busy, accept=True)
    assert kept.endswith("are sure, and what wins is kept, marked unsure") == (busy > doubt.BUSY)
    gain = 1 + 2 * busy
    assert doubt.reasons(busy, 0.0, gain * 1.001) == ""
    assert busy <= doubt.BUSY or doubt.reasons(busy, 0.0, gain * 0.999)
