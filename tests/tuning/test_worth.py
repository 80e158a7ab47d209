"""What knobs were worth, by the trials."""

import pytest

from te_select.tuning.journal import Trial
from te_select.tuning.worth import Knob, knobs_of, plot

DEFAULT = Trial({"unroll": 4, "skip": 0, "rows": False}, 2.0)
TRIALS = [
    DEFAULT,
    Trial({"unroll": 8, "skip": 0, "rows": False}, 1.0),
    Trial({"unroll": 8, "skip": 1, "rows": False}, 1.25),
    Trial({"unroll": 1, "skip": 1, "rows": False}, 3.0),
    Trial({"unroll": 2, "skip": 0, "rows": True}, None, "it hung"),
]


def test_best_with_a_knob_is_compared_with_the_best_without():
    assert knobs_of(TRIALS) == [Knob("unroll", 4, 8, 2.0, 1.0), Knob("skip", 0, 1, 1.0, 1.25)]
    assert [knob.gain for knob in knobs_of(TRIALS)] == [2.0, 0.8]


def test_knob_of_which_one_value_ran_is_left_out():
    assert "rows" not in {knob.name for knob in knobs_of(TRIALS)}
    assert knobs_of([DEFAULT]) == knobs_of([]) == []


def test_trials_of_another_te_select_are_no_trouble():
    other = Trial({"unroll": 8, "gone": 1}, 1.0)
    assert [knob.name for knob in knobs_of([DEFAULT, other])] == ["unroll"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_picture_has_a_cell_for_each_knob_and_workload(tmp_path, suffix):
    path = tmp_path / f"knobs.{suffix}"
    plot(path, {"mask over heads": knobs_of(TRIALS), "a$x_{$b": knobs_of(TRIALS[:2])})
    data = path.read_bytes()
    assert len(data) > 1000
    if suffix == "svg":
        assert b"mask over heads" in data
        assert data.count(b"2.00") == 2
