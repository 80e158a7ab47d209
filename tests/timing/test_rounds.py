"""Timing alone and in turns: the order of calls, the calls behind a figure, how many samples."""

import gc
import itertools

from pytest import approx, fixture, mark, raises

from te_select.timing.rounds import SHORTEST_SAMPLE, Timing, repeats_for, take_turns, time_calls
from tests.support.clock import Clock


@fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("te_select.timing.rounds.time", made)
    return made


def test_ratio_is_of_the_rounds_and_above_1_where_it_is_faster():
    mine, other = Timing((1.0, 1.0, 10.0)), Timing((2.0, 3.0, 40.0))
    assert mine.ratio(other) == 3
    assert other.ratio(mine) == approx(1 / 3)


def test_short_calls_are_bundled_and_their_time_is_that_of_one(clock):
    found = take_turns({"short": clock.call("short", 1e-3)}, rounds=3)
    assert found["short"].seconds == approx([1e-6] * 3)
    assert len(clock.calls) >= 3 * SHORTEST_SAMPLE / 1e-6


def test_each_turn_begins_with_calls_that_are_not_counted(clock):
    slow_first = itertools.count()

    def cold():
        clock.now += 1e-3 if next(slow_first) % 50 else 1.0

    clock.call("a", 1)
    found = take_turns({"cold": cold}, rounds=1)
    assert max(found["cold"].seconds) == approx(1e-3)


def test_fastest_sample_of_a_turn_counts(clock):
    seconds = itertools.cycle([3.0, 1.0, 2.0])

    def uneven():
        clock.now += next(seconds)

    assert take_turns({"uneven": uneven}, rounds=2, samples=3)["uneven"].seconds == (1.0, 1.0)


def test_process_sleeps_before_each_turn_as_long_as_it_is_told(clock, monkeypatch):
    slept = []
    monkeypatch.setattr(clock, "sleep", slept.append, raising=False)
    take_turns({name: clock.call(name, 20) for name in "ab"}, rounds=3, pause=0.5)
    assert slept == [0.5] * 6


def test_order_changes_from_round_to_round(clock):
    names = "abcd"
    take_turns({name: clock.call(name, 20) for name in names}, rounds=12)
    counted = clock.calls[8:]  # without those that measure a call's length; two a turn
    turns = ["".join(dict.fromkeys(counted[k : k + 8])) for k in range(0, len(counted), 8)]
    assert len(turns) == 12
    assert len(set(turns)) > 1
    assert {"".join(sorted(turn)) for turn in turns} == {names}


@mark.parametrize("enabled", [True, False])
def test_garbage_is_collected_after_only_if_it_was_before(enabled):
    during = []

    def fail():
        during.append(gc.isenabled())
        if len(during) > 40:
            raise RuntimeError

    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        take_turns({"a": lambda: during.append(gc.isenabled())}, rounds=1)
        assert gc.isenabled() is enabled
        assert during[-1] is False
        during[:] = [False] * 40
        with raises(RuntimeError):
            take_turns({"a": fail}, rounds=1)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()


@mark.parametrize("milliseconds", [1e-4, 1e-3, 0.1, 1, 11, 400])
def test_sample_is_the_time_of_one_call(clock, milliseconds):
    found = time_calls(clock.call("a", milliseconds))
    assert found == approx([milliseconds / 1e3] * len(found))


@mark.parametrize(
    "milliseconds, count", [(0.17, 89), (1, 30), (11, 7), (200, 5), (400, 3), (2000, 3)]
)
def test_samples_are_as_many_as_make_the_median_sure(clock, milliseconds, count):
    assert len(time_calls(clock.call("a", milliseconds))) == count


def test_short_calls_alone_are_bundled_and_long_ones_single(clock):
    found = time_calls(clock.call("short", 1e-3))
    assert len(clock.calls) > 200 * len(found)
    clock.calls.clear()
    found = time_calls(clock.call("long", 20))
    assert len(clock.calls) == len(found) + 1  # one to warm up


def test_what_is_cold_is_not_counted(clock):
    def call():
        clock.now += 1e-3 if clock.now > 5e-3 else 4e-3

    assert max(time_calls(call)) == approx(1e-3)


def test_garbage_is_not_collected_while_one_call_is_timed(clock):
    seen = []
    time_calls(lambda: (seen.append(gc.isenabled()), clock.call("a", 11)()))
    assert seen[-1] is False
    assert gc.isenabled()


def test_spread_is_that_of_the_middle_half():
    timing = Timing((9.0, 1.0, 4.0, 2.0, 5.0))
    assert [timing.quantile(q) for q in (0, 0.2, 0.5, 0.7, 1)] == [1, 2, 4, 5, 9]
    assert (timing.median, timing.spread) == (4.0, 0.75)
    assert Timing((1.0, 2.0, 4.0)).ratios(Timing((2.0, 4.0, 8.0))).spread == 0


def test_sample_has_at_most_so_many_repeats():
    asked = []
    assert repeats_for(lambda n: asked.append(n) or 1e-3, 1.0, 100) == 100
    assert asked[:2] == [1, 1] and max(asked) == 100
    assert repeats_for(lambda _: 0.5, 0.5) == 1
