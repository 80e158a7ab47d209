"""Unsure outcomes: what is recorded, who uses it, what a user accepts (`records.doubt`)."""

import dataclasses

from pytest import mark
from tvm.s_tir import meta_schedule as ms

from te_select.records import folders, log, writer
from te_select.records.doubt import (
    ALONE,
    BUSY,
    beside,
    is_better,
    is_line_unsure,
    may_replace,
    reasons,
    trust,
)
from te_select.records.folders import SHIPPED
from te_select.records.lookup import find
from te_select.records.manage import merge, prune
from tests.support import flat
from tests.support.cli import run_json
from tests.support.tuning import (
    FEW,
    SMALL,
    V4,
    FakeMeasurer,
    add,
    alike,
    default_of,
    make,
    of_another_tvm,
    only,
)

TARGET = V4.name
SAID = "other programs used 1.00 cores meanwhile"


def test_winner_beside_other_programs_is_not_recorded(run, tmp_path):
    """By a fleet as well, of which the record has the CPU."""
    record = run(busy=1.0, runner="rpc://tracker:9190/kind")
    default = dataclasses.asdict(default_of(SMALL))
    said = f"{SAID}; a config measured 2.00x faster is not recorded"
    assert (record.unsure, record.config, record.busy_cores) == (said, default, 1.0)
    entry = only(tmp_path / TARGET)
    assert (dict(entry.config), entry.unsure) == ({k: int(v) for k, v in default.items()}, said)
    assert entry.session["machine"] == "a CPU behind rpc://tracker:9190/kind"
    found = find(SMALL, V4, tmp_path)
    assert (found.config, found.origin) == (None, "default")
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["gain"], row["outcome"], row["unsure"]) == (None, "unsure", said)
    # MetaSchedule's files say nothing of doubts, so they hold only what may be replayed.
    database = ms.database.JSONDatabase(work_dir=str(tmp_path / TARGET))
    assert len(database.get_all_tuning_records()) == 0


def test_winner_by_more_than_others_used_is_recorded(run):
    """Twice as fast is a gain of a whole call, and half a core is half of that."""
    assert [bool(run(busy=busy, force=True).unsure) for busy in (0.49, 0.51)] == [False, True]


def test_drift_that_all_contestants_share_is_no_spread(run):
    """The machine was twice as slow in every second round; the fake has noise of its own."""

    class Drifting(FakeMeasurer):
        def interleave(self, candidates, rounds):
            return [
                dataclasses.replace(
                    each, seconds=tuple(s * (1 + i % 2) for i, s in enumerate(each.seconds))
                )
                for each in super().interleave(candidates, rounds)
            ]

    record = run(measurer=Drifting())
    assert 0 < record.spread < 0.1
    assert record.unsure == ""


@mark.parametrize(
    "spread, busy, gain, said",
    [
        (0.5, 0.15, 1, ""),
        (0.1, 0.16, 1, "other programs used 0.16 cores meanwhile"),
        (0.1, 0.16, 1.4, ""),
        (0.1, 0.3, 1.4, "used 0.30 cores meanwhile; a config measured 1.40x faster is not"),
        (0.8, 0.0, 1, "the rounds lay 80% apart"),
        (0.8, 2.0, 1, "other programs used 2.00 cores meanwhile; the rounds lay 80% apart"),
    ],
)
def test_reasons_for_doubt(spread, busy, gain, said):
    found = reasons(busy, spread, gain)
    assert said in found and bool(found) == bool(said)


def test_finals_that_do_not_repeat_a_trial_are_unsure(run):
    """For less than half a second, both threads of a trial had one core."""

    class Slower(FakeMeasurer):
        def interleave(self, candidates, rounds):
            return [self._measurement(candidates[0], rounds) for _ in candidates]

    assert run(measurer=Slower()).unsure == "the finals did not repeat the 2.00x of a trial"


def test_unsure_records_are_pruned_and_replaced_by_imports(run, tmp_path):
    run(busy=1.0)
    other = tmp_path / "other"
    merge(tmp_path, other)
    run()
    assert merge(tmp_path, other).taken
    assert not log.read(other / TARGET).entries[0].unsure
    assert prune(other) == []
    run(busy=1.0, force=True)
    assert prune(tmp_path) == []  # the sure record is still there


def test_trials_beside_other_programs_are_made_anew(run):
    counts = []
    for busy in (1.0, 0.0):
        measurer = FakeMeasurer()
        run(busy=busy, measurer=measurer)
        counts.append(len(measurer.measured))
    assert counts[0] == counts[1] > 1


def test_prune_drops_what_is_unsure(run, tmp_path):
    run(busy=1.0)
    (line,) = prune(tmp_path)
    assert line.startswith(f"{TARGET}/w4_1024cte: it is unsure: {SAID}")
    assert log.read(tmp_path / TARGET).entries == ()


@mark.parametrize("nearest", [20_000, 19_000])
def test_unsure_record_that_is_nearer_is_told_of(tmp_path, nearest):
    add(tmp_path, flat(17_000), said={"unsure": "it is not the nearest"})
    add(tmp_path, flat(nearest), said={"unsure": "noise"})
    said = f"; the record x86-64-v4/w4_{nearest}cte is not used: it is unsure: noise"
    found = find(flat(20_000), V4, tmp_path)
    assert (found.config, found.origin) == (None, "default")
    assert found.why == f"the schedule's default config{said}"
    add(tmp_path, flat(15_000), unroll=1)
    found = find(flat(20_000), V4, tmp_path)
    assert found.origin == "nearest:x86-64-v4/w4_15000cte"
    assert found.why.startswith("tuned for x86-64-v4") and found.why.endswith(said)
    for n in (15_000, 900_000):  # another is nearer, or none is near
        assert "unsure" not in find(flat(n), V4, tmp_path).why


def test_accepted_winner_is_recorded_and_compiled_with(run, tmp_path):
    record = run(busy=1.0, accept_unsure=True)
    assert (record.unsure, record.accepted, record.config["unroll"]) == ("", SAID, 8)
    assert (only(tmp_path / TARGET).accepted, only(tmp_path / TARGET).edited) == (SAID, False)
    assert "--accept-unsure" in only(tmp_path / TARGET).session["command"]
    found = find(SMALL, V4, tmp_path)
    assert found.origin == f"tuned:{TARGET}/w4_1024cte" and found.config.unroll == 8
    assert found.why.endswith(f"configs (unsure, and accepted: {SAID})")
    (row,) = run_json("logs", "list", "--tuning-logs", tmp_path)["records"]
    assert (row["outcome"], row["accepted"], row["unsure"]) == ("2.00x, accepted", SAID, "")


def test_default_that_won_is_accepted_too(run, tmp_path):
    record = run(busy=1.0, accept_unsure=True, measurer=FakeMeasurer(alike))
    assert record.default_won and record.accepted == SAID
    assert find(SMALL, V4, tmp_path).origin.startswith("tuned:")


def test_default_that_met_no_other_config_is_not_accepted(run, tmp_path):
    def default_alone(candidate):
        return 1e-3 if candidate.config == run.measurer.measured[0].config else None

    for measurer, trials in ((FakeMeasurer(), 1), (FakeMeasurer(default_alone), 9)):
        record = run(trials=trials, accept_unsure=True, measurer=measurer)
        assert (record.trials, record.unsure, record.accepted) == (trials, ALONE, "")
    assert find(SMALL, V4, tmp_path).origin == "default"


def test_only_config_of_a_space_is_sure(run):
    record = run(FEW, fixed={"vector_bytes": 64}, accept_unsure=True)
    assert (record.trials, record.unsure, record.accepted) == (1, "", "")


def test_accepted_record_is_tuned_again_until_it_is_sure(run, tmp_path):
    run(busy=1.0, accept_unsure=True)
    run(busy=1.0, accept_unsure=True)
    assert run.measurer.measured == []  # who accepts it once accepts it again
    assert run(busy=1.0).unsure and only(tmp_path / TARGET).accepted
    sure = run()
    assert run.measurer.measured and (sure.unsure, sure.accepted) == ("", "")
    assert only(tmp_path / TARGET).accepted == ""
    assert run(busy=1.0, accept_unsure=True, force=True).accepted
    assert only(tmp_path / TARGET).accepted == ""  # a sure one stays


@mark.parametrize("better", [False, True])
def test_accepted_record_is_exported_but_not_as_better(run, tmp_path, better):
    run(busy=1.0, accept_unsure=True)
    merged = merge(tmp_path, tmp_path / "to", better=better)
    said = f"{TARGET}/w4_1024cte: "
    assert bool(merged.taken) == (not better)
    assert merged.accepted == ([] if better else [said + SAID])
    assert merged.left_out == ([f"{said}unsure, and accepted: {SAID}"] if better else [])
    assert prune(tmp_path) == []


def test_what_is_trusted_more_replaces_what_is_trusted_less():
    sure, accepted, unsure = (
        make(SMALL, seconds, **said)
        for seconds, said in ((3e-3, {}), (2e-3, {"accepted": "a"}), (1e-3, {"unsure": "b"}))
    )
    order = [unsure, accepted, sure]
    for rules in (may_replace, is_better):
        for i, new in enumerate(order):
            assert [rules(new, old) for old in order if old is not new] == [
                i > j for j in range(3) if j != i
            ]


def test_record_of_this_tvm_replaces_a_faster_one_of_another():
    fast = of_another_tvm(make(SMALL, 1e-3))
    slow = make(SMALL, 2e-3)
    assert is_better(slow, fast) and not is_better(slow, make(SMALL, 1e-3))
    assert may_replace(slow, make(SMALL, 1e-3))


def test_kernels_of_where_go_by_accepted_records(tmp_path):
    """Their key has what their build would take."""
    place = tmp_path / TARGET
    writer.put(place, [make(SMALL, accepted=SAID)])
    assert len(folders.contents([tmp_path], without=is_line_unsure)) > 1


def test_no_record_that_is_shipped_is_unsure():
    for place in folders.of_targets(SHIPPED):
        assert {trust(entry) for entry in log.read(place).entries} == {2}


@mark.parametrize(
    "busy, said",
    [
        (0.1, "other programs use 0.10 cores"),
        (1.14, "use 1.14 cores: unless they stop, only configs that are 3.28x faster than"),
    ],
)
def test_outlook_tells_which_gains_will_be_sure(busy, said):
    assert said in beside(busy)
    assert ("--accept-unsure" in beside(busy)) == (busy > BUSY)
    kept = beside(busy, accept=True)
    assert kept.endswith("are sure, and what wins is kept, marked unsure") == (busy > BUSY)
    gain = 1 + 2 * busy
    assert reasons(busy, 0.0, gain * 1.001) == ""
    assert busy <= BUSY or reasons(busy, 0.0, gain * 0.999)
