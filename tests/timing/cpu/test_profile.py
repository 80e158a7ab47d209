"""A measured profile: thresholds from ratios, and the file that libraries read."""

from __future__ import annotations

import pytest

from te_select.backends.cpu.profile import of_this_machine
from te_select.runtime.call.cpu.profile import DECISIONS, NEVER, Profile
from te_select.timing.cpu import profile as module
from te_select.timing.cpu.profile import (
    Comparison,
    Measured,
    measure,
    shares,
    text_of,
    threshold,
)
from te_select.timing.rounds import Timing

MB = 1 << 20


@pytest.mark.parametrize(
    ("ratios", "first"),
    [
        ((0.5, 0.8, 1.5, 1.2), 2 * MB * 2**0.5),
        ((1.1, 1.5, 1.5, 1.2), MB),
        ((0.5, 0.8, 0.9, 0.9), NEVER),
        ((0.5, 1.01, 0.9, 1.5), 4 * MB * 2**0.5),  # 1.01 is no gain, and a loss follows
        ((0.5, 1.3, 0.99, 1.5), MB * 2**0.5),
    ],
)
def test_threshold_loses_the_least(ratios, first):
    sizes = [MB << k for k in range(len(ratios))]
    assert threshold(list(zip(sizes, ratios, strict=True))) == pytest.approx(first)


@pytest.mark.parametrize(
    ("one", "several", "threads", "caches", "found"),
    [
        (2 * MB, 4 * MB, 2, 1, (2 * MB, 0)),  # each thread has a cache of its own
        (32 * MB, 32 * MB, 2, 1, (0, 32 * MB)),  # they share one
        (3 * MB, 5 * MB, 2, 1, (2 * MB, MB)),
        (32 * MB, 64 * MB, 16, 2, (0, 32 * MB)),
        (8 * MB, 4 * MB, 2, 1, (0, 4 * MB)),  # noise
        (MB, 4 * MB, 2, 1, (2 * MB, 0)),
        (5 * MB, 5 * MB, 1, 1, (0, 5 * MB)),
        (NEVER, 4 * MB, 2, 1, (0, 4 * MB)),
        (4 * MB, NEVER, 2, 1, (NEVER, 0)),
        (0, 0, 2, 1, (0, 0)),
    ],
)
def test_thresholds_are_divided_among_threads_and_caches(one, several, threads, caches, found):
    assert shares(one, several, threads, caches) == found


def test_measured_decisions_are_such_as_a_library_takes(monkeypatch, tmp_path):
    """At sizes so small that the figures mean nothing."""
    monkeypatch.setattr(module, "SIZES", (1 << 12,))
    monkeypatch.setattr(module, "THREAD_SIZES", (1 << 12,))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "2")
    steps = []
    found = measure(of_this_machine(), lambda *step: steps.append(step), 2)
    assert steps == [(k, module.STEPS) for k in range(module.STEPS + 1)]
    assert set(found.decisions) == set(DECISIONS)
    assert all(each.ratio > 0 for each in found.comparisons)
    assert {each.threads for each in found.comparisons} == {0, 1, 2}
    path = tmp_path / of_this_machine().file
    path.parent.mkdir(parents=True)
    path.write_text(text_of(found, "a test"))
    taken = of_this_machine()
    assert (taken.origin, taken.problem) == ("measured by the user", "")
    assert taken.decisions == found.decisions


class Ratios:
    """A bench that measures what the test says."""

    def __init__(self, random=1.0, blocks=1.0, walk=1.0, second=(0.5, 2.0), stream=()):
        self.random, self.blocks, self.walk, self.second = random, blocks, walk, second
        self.halves = iter(stream)

    def streaming(self, name, threads):
        ratios = {1: (0.5,), threads: (0.5,)}
        if name == "stream":
            ratios = next(self.halves, ratios)
        return [
            Comparison("", count, MB << k, ratio)
            for count, each in ratios.items()
            for k, ratio in enumerate(each)
        ]

    def second_thread(self):
        return [Comparison("", 2, MB << k, ratio) for k, ratio in enumerate(self.second)]

    def skipping(self):
        return [Comparison("", 0, MB, ratio) for ratio in (1.0, self.random, 2.0, self.blocks)]

    def backwards(self):
        return Comparison("", 1, MB, self.walk)


@pytest.fixture
def decided(monkeypatch):
    """The decisions that follow from ratios, on a machine with two threads."""
    decisions = dict.fromkeys(DECISIONS, 0) | {"bytes_per_thread": 1 << 18, "backwards": 1}
    current = Profile({"threads": 2, "threads_per_l3": 2}, "", decisions, "", "", False)

    def decide(**ratios):
        monkeypatch.setattr(module, "_Bench", lambda _rounds: Ratios(**ratios))
        found = measure(current)
        return found.decisions | {"unsure": found.unsure}

    return decide


@pytest.mark.parametrize(
    ("random", "blocks", "skip"),
    [(0.9, 0.9, 0), (0.9, 1.02, 0), (0.9, 1.5, 1), (0.98, 1.0, 2), (1.5, 1.5, 2)],
)
def test_cond_is_looked_at_first_unless_it_costs(decided, random, blocks, skip):
    assert decided(random=random, blocks=blocks)["skip"] == skip


@pytest.mark.parametrize(("walk", "backwards"), [(0.9, 0), (0.98, 1), (1.02, 1), (1.1, 1)])
def test_walk_backwards_stays_unless_it_clearly_wins_or_loses(decided, walk, backwards):
    assert decided(walk=walk)["backwards"] == backwards


def test_threshold_of_the_second_thread_is_shared_by_two(decided):
    assert decided(second=(0.5, 2.0))["bytes_per_thread"] == pytest.approx(MB * 2**0.5 / 2, abs=1)
    assert decided(second=(2.0, 2.0))["bytes_per_thread"] == MB / 2
    assert decided(second=(1.02, 2.0))["bytes_per_thread"] > MB / 2  # 1.02 is noise


EARLY, LATE, NEVER_FASTER = (0.5, 1.2, 1.2, 1.2), (0.5, 0.7, 1.2, 1.2), (0.5, 0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("first", "second", "unsure"),
    [
        ({1: EARLY, 2: LATE}, {1: EARLY, 2: LATE}, None),
        ({1: EARLY, 2: EARLY}, {1: EARLY, 2: LATE}, (2**0.5, 2**1.5)),
        ({1: LATE, 2: LATE}, {1: EARLY, 2: LATE}, (2**1.5, 2**0.5)),
        ({1: EARLY, 2: LATE}, {1: EARLY, 2: NEVER_FASTER}, (2**1.5, NEVER / MB)),
        ({1: NEVER_FASTER, 2: NEVER_FASTER},) * 2 + (None,),
    ],
)
def test_threshold_that_differs_between_the_halves_stays(decided, first, second, unsure):
    found = decided(stream=(first, second))
    kept = (found["stream_per_thread"], found["stream_per_l3"])
    assert "fill" not in found["unsure"]
    if unsure:
        assert found["unsure"]["stream"] == pytest.approx([size * MB for size in unsure])
        assert kept == (0, 0)
    else:
        assert not found["unsure"] and kept != (0, 0)


@pytest.fixture
def bench(monkeypatch):
    """A bench whose kernels are their knobs; what the second way takes is half of the first."""
    made = module._Bench(2)
    monkeypatch.setattr(made, "kernel", lambda _workload, **knobs: knobs)
    monkeypatch.setattr(module, "call", lambda kernel, operands: (kernel, operands))
    calls = {}

    def take(contestants, _rounds):
        calls.update(contestants)
        fast = {"stream_from": 1, "skip": 1, "backwards": 1}
        return {
            name: Timing((1.0 if knobs.items() & fast.items() else 2.0,))
            for name, (knobs, _) in contestants.items()
        }

    monkeypatch.setattr(module, "take_turns", take)
    return made, calls


@pytest.mark.parametrize(("name", "side", "moved"), [("stream", True, 13 / 4), ("fill", False, 1)])
def test_stores_past_the_cache_are_compared_at_bytes_or_out(bench, monkeypatch, name, side, moved):
    monkeypatch.setattr(module, "SIZES", (1 << 12, 1 << 13))
    rows = bench[0].streaming(name, 2)
    assert [(row.threads, row.bytes, row.ratio) for row in rows] == [
        (threads, moved * size, 2.0) for threads in (1, 2) for size in (4096, 8192)
    ]
    for knobs, operands in bench[1].values():
        assert operands.then.shape == ((2048,) if side else ())
        assert knobs["bytes_per_thread"] == module._PARALLEL


def test_other_choices_have_the_second_way_as_numerator(bench):
    others = [*bench[0].skipping(), bench[0].backwards()]
    assert [each.ratio for each in others] == [2.0] * 5


def test_second_thread_is_compared_where_a_call_has_just_two(bench, monkeypatch):
    monkeypatch.setattr(module, "THREAD_SIZES", (1 << 15,))
    rows = bench[0].second_thread()
    assert [row.bytes for row in rows] == [1 << 15]
    for name, (knobs, operands) in bench[1].items():
        four = (operands.cond, operands.then, operands.else_, operands.out)
        moved, grain = sum(each.nbytes for each in four), knobs["bytes_per_thread"]
        assert (moved // grain if grain else 1) == int(name.split()[0])


def test_file_says_what_it_is():
    text = text_of(Measured(dict.fromkeys(DECISIONS, 1), ()), "measured on a Tuesday")
    assert text.splitlines()[:2] == ["# measured on a Tuesday", "stream_per_thread = 1"]
