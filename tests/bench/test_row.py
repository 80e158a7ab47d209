"""The figures that follow from the times of a row."""

import pytest

from te_select.bench.row import COPY, NAMED, OURS, SELECT
from tests.support.bench_rows import row


def test_times_are_the_others_median_over_ours():
    found = row({OURS: (1.0, 2.0, 9.0), "slow": (1.0, 8.0, 9.0), "fast": (0.5, 1.0, 9.0)})
    assert found.times("slow") == 4
    assert found.times("fast") == 0.5
    assert found.times(OURS) == 1
    assert found.times("absent") is None
    assert row({"slow": 1.0}).times("slow") is None


def test_head_to_head_takes_the_place_of_the_rounds_of_all():
    found = row({OURS: 1.0, "a": 2.0, "b": 3.0}, duels={"a": 4.0})
    assert (found.times("a"), found.times("b")) == (4, 3)
    assert found.best == "b"


def test_best_is_the_fastest_peer_and_neither_ours_nor_a_probe():
    times = {OURS: 2.0, NAMED: 0.1, COPY: 0.2, SELECT: 0.3, "a": 4.0, "b": 3.0}
    found = row(times)
    assert set(found.ranked) == {"a", "b"}
    assert found.best == "b"
    assert row({**times, "a": 1.0}).best == "a"
    assert row({"a": 2.0, "b": 1.0}).best == "b"  # even if our kernel is wrong
    assert row({OURS: 1.0}).best is None


def test_rate_is_of_the_median_and_roof_of_the_faster_probe():
    found = row({OURS: (1.0, 0.5, 2.0)}, moved=3_000, roofs={COPY: 4e3, SELECT: 6e3})
    assert found.rate(OURS) == pytest.approx(3_000)
    assert found.roof == 6e3
    assert row().roof is None
