"""What the plot of the bench shows: each figure where its axis says."""

from typing import Any

import pytest

from te_select.bench.row import COPY, OURS, SELECT
from te_select.bench.suite import Entry
from tests.support.bench_rows import ENTRY, row

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from te_select.bench import plot as module

ROOFS = {COPY: 4e11, SELECT: 3e11}
ROWS = [
    row({OURS: 4e-3, "numpy": 8e-3, "slow": 16e-3}, moved=10**9, roofs=ROOFS),
    row(
        {OURS: 1e-3, "numpy": 0.5e-3},
        moved=10**8,
        roofs={COPY: 2e11, SELECT: 1e11},
        entry=Entry("other", ENTRY.workload, ""),
    ),
]


@pytest.fixture
def axes() -> Any:
    return Figure().subplots()


def test_shares_of_the_roof_lie_on_the_line_of_their_row(axes: Any) -> None:
    small = row({OURS: 1.0, "numpy": 1.0}, moved=module.LEAST_MOVED - 1, roofs=ROOFS)
    module._shares(axes, [*ROWS, small, row({"numpy": 1.0}, moved=10**9)])
    peers, ours = (points.get_offsets().tolist() for points in axes.collections)
    assert ours == [[pytest.approx(62.5), 0], [pytest.approx(50), 1]]
    assert peers == [[pytest.approx(31.25), 0], [pytest.approx(100), 1]]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "small",
        "other",
        "small",
        "small",
    ]


def test_bars_are_times_as_fast_as_the_best_peer_from_1_on(axes: Any) -> None:
    module._bars(axes, ROWS)
    fast, slow = axes.patches
    assert (fast.get_x(), fast.get_width()) == (1, pytest.approx(1))
    assert (slow.get_x() + slow.get_width(), slow.get_facecolor() != fast.get_facecolor()) == (
        pytest.approx(0.5),
        True,
    )
    assert [text.get_text() for text in axes.texts] == ["2.00 x numpy", "0.50 x numpy"]


def test_rows_without_another_system_have_no_bar(axes: Any) -> None:
    module._bars(axes, [row({OURS: 1.0})])
    assert not axes.patches
    assert "no other system was measured" in axes.texts[0].get_text()
