"""What the plot of the bench shows: each figure where its axis says."""

from typing import Any

import pytest

from te_select.bench.row import COPY, OURS, SELECT
from te_select.bench.suite import Entry
from tests.support.bench_rows import ENTRY, row

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from te_select.bench import plot as module

W = ENTRY.workload
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
NUMBERS = module._numbers(ROWS)


@pytest.fixture
def axes() -> Any:
    return Figure().subplots()


def test_bandwidths_lie_over_the_bytes_moved(axes: Any) -> None:
    module._roofline(axes, ROWS, NUMBERS)
    copy, select = axes.get_lines()
    assert copy.get_xydata().tolist() == [[1e8, 200], [1e9, 400]]
    assert select.get_xydata().tolist() == [[1e8, 100], [1e9, 300]]
    peers, ours = (points.get_offsets().tolist() for points in axes.collections[2:])
    assert ours == [[1e8, pytest.approx(100)], [1e9, pytest.approx(250)]]
    assert sorted(peers) == [
        [1e8, pytest.approx(200)], [1e9, pytest.approx(62.5)], [1e9, pytest.approx(125)]
    ]  # fmt: skip
    assert axes.get_ylabel() == "GB/s"


def test_bars_are_times_as_fast_as_the_best_peer_from_1_on(axes: Any) -> None:
    module._bars(axes, ROWS, NUMBERS)
    fast, slow = axes.patches
    assert (fast.get_x(), fast.get_width()) == (1, pytest.approx(1))
    assert (slow.get_x() + slow.get_width(), slow.get_facecolor() != fast.get_facecolor()) == (
        pytest.approx(0.5),
        True,
    )
    assert [text.get_text() for text in axes.texts] == ["2.00 x numpy", "0.50 x numpy"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["small  1", "other  2"]


def test_rows_without_another_system_have_no_bar(axes: Any) -> None:
    module._bars(axes, [row({OURS: 1.0})], {"small": 1})
    assert not axes.patches
    assert "no other system was measured" in axes.texts[0].get_text()


@pytest.mark.parametrize(
    ("value", "text"), [(500, "500 B"), (2000, "2 KB"), (5e6, "5 MB"), (1e9, "1 GB")]
)
def test_bytes_are_written_in_their_unit(value: float, text: str) -> None:
    assert module._bytes(value) == text


def test_dots_have_the_numbers_of_the_bars(axes: Any) -> None:
    module._roofline(axes, ROWS, NUMBERS)
    assert [text.get_text() for text in axes.texts] == ["2", "1"]
    assert NUMBERS == {"small": 1, "other": 2}


def test_roof_is_a_band_where_rows_move_as_many_bytes(axes: Any) -> None:
    low = row({OURS: 1.0}, moved=10**9, roofs={COPY: 1e11, SELECT: 3e11}, entry=Entry("low", W, ""))
    module._roofline(axes, [*ROWS, low], module._numbers([*ROWS, low]))
    band = axes.collections[0].get_paths()[0].vertices.tolist()
    assert [1e9, 100] in band
    assert [1e9, 400] in band
