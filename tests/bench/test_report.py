"""What the reports of the bench say: each figure, in its unit."""

import contextlib
import io
import os
import re
import shlex
from unittest import mock

from pytest import approx, mark

from te_select.bench.peers import choose_peers
from te_select.bench.report import Results, command, document, geometric_means
from te_select.bench.row import COPY, OURS, SELECT, Options
from te_select.bench.suite import DEFAULT, Entry
from te_select.cli.bench import print_report
from te_select.timing.inputs import Mask
from tests.support import text_of
from tests.support.bench_rows import ENTRY, row

# 1 GB in 4 ms is 250 GB/s, of a roof of 400; the peer takes 7 ms.
MEASURED = {
    "times": {OURS: (4e-3, 1e-3, 9e-3), "numpy": (9e-3, 5e-3, 7e-3), COPY: 2e-3, SELECT: 3e-3},
    "moved": 10**9,
    "roofs": {COPY: 4e11, SELECT: 3e11},
    "origin": "tuned:emeraldrapids/w4_1024cte",
    "how": {COPY: "plain stores", SELECT: "streaming stores"},
}
LONG = "a-workload-whose-name-is-longer-than-many-a-terminal-is-wide-" + 30 * "x"


def results(*rows, **fields):
    known = {
        "absent": {},
        "options": Options(),
        "machine": {"versions": {}},
        "device": "a CPU",
        "busy": 0.0,
        "interrupted": False,
    }
    return Results(list(rows), **{**known, **fields})


def measured(name="short", **fields):
    return row(**{**MEASURED, "entry": Entry(name, ENTRY.workload, ""), **fields})


def printed(found, width=200, terminal=False):
    """What is printed, without what makes letters bold."""
    file = io.StringIO()
    there = {"COLUMNS": str(width), **({"FORCE_COLOR": "1"} if terminal else {})}
    with mock.patch.dict(os.environ, there), contextlib.redirect_stdout(file):
        print_report(found)
    return re.sub(r"\x1b\[[0-9;]*m", "", file.getvalue())


def cells(found, name="short"):
    """The row of a name in the printed table, by column."""
    lines = printed(found).splitlines()
    columns = ("ms", "GB/s", "% of roof", "best peer", "its ms", "times best", "times NumPy")
    (line,) = (line for line in lines if line.strip().startswith(name))
    (head,) = (line for line in lines if "GB/s" in line and "best peer" in line)
    assert [head.index(column) for column in columns] == sorted(head.index(c) for c in columns)
    return dict(zip(("workload", *columns, "config"), line.split(), strict=True))


def test_each_cell_has_its_figure_in_its_unit():
    assert cells(results(measured())) == {
        "workload": "short",
        "ms": "4.00",
        "GB/s": "250.0",
        "% of roof": "62",
        "best peer": "numpy",
        "its ms": "7.00",
        "times best": "1.75",  # 7 / 4, and not a median of ratios
        "times NumPy": "1.75",
        "config": "tuned:emeraldrapids/w4_1024cte",
    }


@mark.parametrize(
    "seconds, shown", [(123e-3, "123"), (4e-3, "4.00"), (56.7e-6, "0.0567"), (1.5, "1.50e+03")]
)
def test_times_are_milliseconds_of_three_digits(seconds, shown):
    assert cells(results(measured(times={OURS: seconds, "numpy": 2 * seconds})))["ms"] == shown


def test_quantiles_are_those_of_eleven_rounds():
    rounds = tuple(k * 1e-3 for k in (3, 1, 11, 5, 8, 2, 10, 7, 4, 9, 6))
    found = results(measured(times={OURS: rounds, "numpy": 1e-3}))
    expected = {"median": 6e-3, "p20": 3e-3, "p80": 9e-3}
    (row_,) = document(found)["rows"]
    assert {name: row_["seconds"][OURS][name] for name in expected} == approx(expected)


def test_page_has_the_fields_of_the_document():
    page = text_of("docs/bench.md").partition("**`--json`**")[2].partition("\n## ")[0]
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    found = document(results(measured()))
    assert sorted(re.findall(r"`(\w+)`", "".join(cells))) == sorted([*found, *found["rows"][0]])


def test_document_has_the_figures_of_each_row():
    found = document(results(measured(duels={"numpy": 1.25})))
    (shown,) = found["rows"]
    assert shown["seconds"][OURS] == {"median": 4e-3, "p20": 1e-3, "p80": 9e-3}
    assert shown["bytes_per_second"] == approx(
        {OURS: 250e9, "numpy": 1e9 / 7e-3, COPY: 400e9, SELECT: 300e9}
    )
    assert shown["roof"]["bytes_per_second"] == 400e9
    assert shown["share_of_roof"] == approx(0.625)
    assert (shown["best_peer"], shown["head_to_head"]) == ("numpy", {"numpy": 1.25})
    assert shown["times"] == approx({"numpy": 1.25, COPY: 0.5, SELECT: 0.75})
    assert found["geometric_means"] == {
        "numpy": {"times": approx(1.25), "rows": 1},
        "best peer": {"times": approx(1.25), "rows": 1},
    }


def test_best_is_the_fastest_peer_by_its_times_over_ours():
    assert row({OURS: 1.0, "a": 2.0, "b": 3.0}, duels={"a": 4.0}).best == "b"
    assert row({OURS: 2.0, COPY: 0.2, SELECT: 0.3, "a": 4.0}).best == "a"
    assert row({"a": 2.0, "b": 1.0}).best == "b"  # even if our kernel is wrong
    assert row({OURS: 1.0}).best is None


def test_geometric_means_use_the_head_to_head():
    peers = {"a": 1.0, "b": 4.0}
    rows = [row({OURS: 0.5, **peers}), row({OURS: 1.0, **peers}, duels={"a": 2.0})]
    assert geometric_means([*rows, row(peers)]) == {
        "a": (approx(2), 2),
        "b": (approx(32**0.5), 2),
        "best peer": (approx(2), 2),
    }


def test_command_measures_the_same_row_again():
    options = Options("x86-64-v3", choose_peers("numpy,torch"), None, True, "logs")
    measured_row = row(mask=Mask(10, 64), rounds=7)
    assert measured_row.label == "small 10 % x64"
    words = shlex.split(command(measured_row, options))
    assert words[:2] == ["te-select", "bench"]
    flags = dict(zip(words[2:-1:2], words[3:-1:2], strict=True))
    assert flags.pop("--workload").startswith('{"cond_shape": [4, 1]')
    assert flags == {
        "--density": "10",
        "--block": "64",
        "--peers": "numpy,torch",
        "--rounds": "7",
        "--target": "x86-64-v3",
        "--tuning-logs": "logs",
    }
    assert words[-1] == "--cold"
    by_name = command(row(entry=DEFAULT[0]), Options(tuning_logs=False))
    assert "--only scalar" in by_name
    assert by_name.endswith("--tuning-logs none")
    assert "--peers none" in command(row(), Options())


def test_narrow_table_folds_names_and_drops_the_least():
    text = printed(results(measured(LONG), measured()), 80, terminal=True)
    table = text.split("medians of")[0]
    assert "…" not in table
    assert max(map(len, table.split("no room")[0].splitlines())) <= 80
    assert LONG in "".join(line.split()[0] for line in table.splitlines() if line.strip())
    assert "no room for config, % of roof" in text
    for column in ("best peer", "its ms", "times best"):
        assert column in table
    assert "no room for" not in printed(results(measured()), 140, terminal=True)


def test_ratios_are_those_of_the_medians_or_of_the_duels():
    assert "head to head" not in printed(results(measured()))
    with_duel = printed(results(measured(duels={"numpy": 1.25})))
    assert "1.25 *" in with_duel
    assert "* of medians head to head" in with_duel


def test_what_the_table_leaves_out_is_said_under_it():
    first = measured(unsupported={"picky": "no such type"}, cache="cold", queued=("slow",))
    second = measured(
        "other", wrong={"liar": "out[0] is 0x1"}, unsupported={"picky": "later"}, rounds=7
    )
    text = printed(
        results(first, second, absent={"missing": "pip install it"}, busy=1.26, interrupted=True)
    )
    for said in (
        "medians of 3 to 7 rounds in turns; caches cold, hot; the roof is the faster of a copy",
        "with the cost of launches, not from a CUDA graph: slow",
        "others were using 1.3 cores when this began",
        "  1.75x the speed of numpy (geometric mean of 2 rows)",
        "absent: missing: pip install it",
        "does not run 2 of 2 rows: picky: no such type",
        "WRONG: other: liar: out[0] is 0x1",
        f"  {command(first, Options())}",
        "interrupted: rows are missing",
    ):
        assert said in text
    idle = printed(results(measured(), busy=0.15))
    assert "others were using" not in idle and "interrupted" not in idle


def test_row_says_that_a_kernel_is_wrong():
    found = printed(results(measured(times={"numpy": 1e-3}, wrong={OURS: "out[0] is 0x1"})))
    assert re.search(r"^ *short +WRONG", found, re.MULTILINE)
    assert f"WRONG: short: {OURS}: out[0] is 0x1" in found


def test_nothing_measured_is_said():
    assert printed(results()) == "nothing was measured\n"
    assert (
        printed(results(interrupted=True))
        == "nothing was measured\ninterrupted: rows are missing\n"
    )
