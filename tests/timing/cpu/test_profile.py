"""A measured profile: thresholds from ratios, and the file that libraries read."""

from __future__ import annotations

import pytest

from te_select.machines.cpu.profile import of_this_machine
from te_select.runtime.cpu.profile import DECISIONS, NEVER
from te_select.timing.cpu import profile as module
from te_select.timing.cpu.profile import Measured, measure, shares, text_of, threshold

MB = 1 << 20


@pytest.mark.parametrize(
    ("ratios", "first"),
    [
        ((0.5, 0.8, 1.5, 1.2), 2 * MB * 2**0.5),
        ((1.1, 1.5, 1.5, 1.2), 0),
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
    monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "2")
    steps = []
    found = measure(of_this_machine(), lambda *step: steps.append(step))
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


def test_file_says_what_it_is():
    text = text_of(Measured(dict.fromkeys(DECISIONS, 1), ()), "measured on a Tuesday")
    assert text.splitlines()[:2] == ["# measured on a Tuesday", "stream_per_thread = 1"]
