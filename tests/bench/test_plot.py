"""What the plot of the bench shows: each share where its axis says, outliers by name."""

from pytest import approx, fixture, importorskip

from te_select.bench.row import COPY, OURS
from te_select.bench.suite import Entry
from tests.support.bench_rows import ENTRY, row

importorskip("matplotlib")
from matplotlib.figure import Figure

from te_select.bench import plot as module


def share(name, seconds, **fields):
    """A row whose roof moves 1 MB in a millisecond."""
    known = {"moved": 10**6, "roofs": {COPY: 1e9}, "entry": Entry(name, ENTRY.workload, "")}
    return row(seconds, **{**known, **fields})


ROWS = [
    share("high", {OURS: 0.5e-3, "numpy": 1e-3, "slow": 16e-3}),
    share("usual", {OURS: 1e-3, "numpy": 2e-3}),
    share("far", {OURS: 1.25e-3, "numpy": 5e-3}),
    share("slower", {OURS: 2e-3, "numpy": 1e-3}),
    share("low", {OURS: 2.5e-3, "numpy": 4e-3}),
]


@fixture
def axes():
    return Figure().subplots()


def drawn(axes, rows):
    """The dots of te-select, then of the best peers."""
    module._shares(axes, rows)
    dots = [each for each in axes.collections if hasattr(each, "get_sizes")]
    return [each.get_offsets().tolist() for each in dots]


def test_dots_are_shares_of_the_roof_from_the_lowest_on(axes):
    ours, peers = drawn(axes, ROWS)
    assert ours == [[at, approx(y)] for at, y in enumerate((0.4, 0.5, 0.8, 1, 2))]
    assert peers == [[at, approx(y)] for at, y in enumerate((0.25, 1, 0.2, 0.5, 1))]
    texts = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert "te-select: median 80%" in texts
    assert "the best other system: median 50%" in texts
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "low", "slower", "far", "usual", "high"
    ]  # fmt: skip


def test_outliers_are_named_and_slower_ones_are_red(axes):
    drawn(axes, ROWS)
    named = {text.get_text(): text.xy for text in axes.texts}
    assert named == {
        "low": (0, approx(0.4)),
        "slower: 0.5x numpy": (1, approx(1)),
        "far: 4x numpy": (2, approx(0.8)),
        "high": (4, approx(2)),
    }
    lines = [
        tuple(each.get_color()[0]) for each in axes.collections if not hasattr(each, "get_sizes")
    ]
    assert len({lines[0], *lines[2:]}) == 1
    assert lines[1] != lines[0]


def test_only_large_rows_with_a_time_and_a_roof_are_drawn(axes):
    left_out = [
        share("small", {OURS: 1e-3}, moved=10**6 - 1),
        share("no roof", {OURS: 1e-3}, roofs={}),
        share("wrong", {"numpy": 1e-3}),
    ]
    (ours,) = drawn(axes, [*left_out, share("alone", {OURS: 1e-3})])
    assert ours == [[0, approx(1)]]


def test_title_has_the_machine_and_the_caches(tmp_path):
    path = tmp_path / "bench.svg"
    module.plot(path, ROWS, "Some CPU, 2 threads")
    assert "Some CPU, 2 threads" in path.read_text()
