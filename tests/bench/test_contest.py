"""The contestants of a row: which are ranked, and which meet again."""

import numpy as np
import pytest

from te_select.bench.row import OURS, Options
from te_select.bench.run import CLOSE, DUEL_ROUNDS, Contest, decided
from te_select.bench.stage import Stage, difference
from te_select.timing.inputs import Mask, make_operands
from te_select.timing.rounds import Timing
from tests.support.bench_rows import ENTRY, row

SETS = [make_operands(ENTRY.workload, Mask(), seed) for seed in range(2)]


def contest(**methods):
    """A contest on a stage with these methods, which finds every result right."""
    made = Stage("native")
    for name, method in ({"check": lambda *_: ""} | methods).items():
        setattr(made, name, method)
    return Contest(SETS, made)


def test_kernel_of_ours_that_cannot_run_is_wrong_and_no_gap():
    def fails(*_args):
        raise ValueError("the kernel failed")

    made = contest(calls=fails)
    made.add_ours(ENTRY.workload, Options())
    assert made.wrong == {OURS: "the kernel failed"}
    assert made.unsupported == made.contestants == {}


def test_calls_of_several_sets_take_turns():
    seen = []
    made = contest()
    calls = [lambda: seen.append(0), lambda: seen.append(1)]
    made.add("peer", lambda: calls, lambda *_: SETS[0].out)
    for _ in range(3):
        made.contestants["peer"]()
    assert seen == [0, 1, 0]


def test_difference_is_of_bits_type_and_shape():
    operands = SETS[0]
    right = np.where(operands.cond, operands.then, operands.else_)
    assert difference(right, operands) == ""
    wrong = right.copy()
    wrong.view("u4")[2, 3] ^= 1
    assert difference(wrong, operands).startswith("out[2,3] is 0x")
    assert difference(right.astype("f8"), operands) == "is float64 [4, 5], expected float32 [4, 5]"
    assert "[5, 4], expected float32 [4, 5]" in difference(right.T, operands)


def test_close_calls_are_decided_until_the_best_was_met():
    times = {OURS: 1.0, "near": 1.01, "next": 1.02, "far": 2.0}
    met = []

    def turns(contestants, rounds):
        met.append((set(contestants), rounds))
        slower = {name: Timing((2 * each,)) for name, each in contestants.items()}
        return slower | {OURS: Timing((1.9,))}

    found = decided(row(times), times, turns)
    assert met == [({OURS, "near"}, DUEL_ROUNDS), ({OURS, "next"}, DUEL_ROUNDS)]
    assert found.duels == pytest.approx({"near": 2.02 / 1.9, "next": 2.04 / 1.9})
    assert found.best == "near"


@pytest.mark.parametrize(
    ("times", "rounds"),
    [
        ({OURS: 1.0, "peer": 1 + 1.01 * CLOSE}, 15),
        ({OURS: 1.0, "peer": 1 - 1.01 * CLOSE}, 15),
        ({OURS: 1.0, "peer": 1.0}, DUEL_ROUNDS),
        ({"peer": 1.0}, 15),
        ({OURS: 1.0}, 15),
    ],
)
def test_what_is_clear_is_not_met_again(times, rounds):
    def turns(*_):
        raise AssertionError

    assert decided(row(times, rounds=rounds), times, turns).duels == {}
