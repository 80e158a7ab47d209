"""Sessions that tune the kernels of `te_select.where`, with made-up times."""

import shlex
from dataclasses import asdict

import pytest

from te_select import TargetError
from te_select.backends.targets import resolve
from te_select.compiler.family_library import config_of
from te_select.operator.family import kernels, typical
from te_select.records import folders
from te_select.tuning.options import Options
from te_select.tuning.session import FamilySession
from tests.support.tuning import FakeMeasurer, by_unroll, only

TARGET = "x86-64-v4"
V4 = resolve(TARGET)
RUNS, ROWS = "w4 n:cte", "w4 m:cte x n:t"


class Tuned:
    """Tunes kernels by name, with one fake measurer each."""

    def __init__(self, logs, patch):
        self.logs = logs
        self.patch = patch
        self.measurer = FakeMeasurer()

    def __call__(self, name, seconds=by_unroll, **options):
        self.measurer = FakeMeasurer(seconds)
        self.patch.setattr("te_select.tuning.session.open_measurer", lambda *_: self.measurer)
        with FamilySession(TARGET, self.logs, "local", Options(**options)) as session:
            task = session.task(typical(kernels()[name]))
            return session.tune(task, lambda _: None)


@pytest.fixture
def tuned(tmp_path, monkeypatch):
    return Tuned(tmp_path, monkeypatch)


@pytest.mark.parametrize("name, vectors, in_flight", [(RUNS, 3, 4), (ROWS, 3, 1)])
def test_knobs_of_the_inner_loop_are_tried(tuned, name, vectors, in_flight):
    tuned(name)
    member = kernels()[name]
    found = tuned.measurer.measured
    default = asdict(config_of(member, V4, {}))
    assert dict(found[0].config) == default
    tried = {(each.config["vector_bytes"], each.config["unroll"]) for each in found}
    assert len(found) == len(tried) == vectors * in_flight
    others = default.keys() - {"vector_bytes", "unroll"}
    assert all(each.config[knob] == default[knob] for each in found for knob in others)
    assert {(each.workload, each.of_family) for each in found} == {(member, True)}
    assert {each.point for each in found} == {typical(member)}


def test_no_more_configs_than_trials_are_measured(tuned):
    record = tuned(RUNS, trials=5)
    assert (len(tuned.measurer.measured), record.trials) == (5, 5)
    assert tuned("w2 n:cte", trials=1).default_won


def test_records_lie_apart_and_hold_the_config(tuned):
    record = tuned(RUNS)
    assert record.config["unroll"] == 8 and not record.unsure
    entry = only(tuned.logs / "where" / TARGET)
    assert entry.key == "w4_16384cte" and dict(entry.config) == dict(record.config)
    assert not (tuned.logs / TARGET).exists()
    assert folders.of_targets(tuned.logs) == []
    tuned(RUNS)
    assert tuned.measurer.measured == []


def test_command_of_a_record_names_the_kernel(tuned):
    tuned(ROWS, trials=2)
    entry = only(tuned.logs / "where" / TARGET)
    words = shlex.split(entry.session["command"])
    assert words[:4] == ["te-select", "tune", "--where", ROWS]
    assert words[words.index("--tuning-logs") + 1] == str(tuned.logs)


def test_target_that_is_no_cpu_is_refused(tuned):
    with pytest.raises(TargetError, match="is no CPU; the family of where"):
        config_of(kernels()[RUNS], resolve("cuda:sm_80"), {})
