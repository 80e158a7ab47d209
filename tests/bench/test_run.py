"""Tests of the bench: peers, what a run ranks, and what its reports say."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import te_select
from te_select.bench import peers as peers_module
from te_select.bench import run as run_module
from te_select.bench.contest import decided, in_turns, name_dims
from te_select.bench.options import Options
from te_select.bench.peers import PEERS, Call, Peer, UnsupportedError, choose_peers
from te_select.bench.report import Results, geometric_means, label, print_report
from te_select.bench.row import OURS, Row
from te_select.bench.run import run
from te_select.bench.suite import Entry
from te_select.checking.reference import first_difference, placed
from te_select.cli import app
from te_select.operator.workload import Workload
from te_select.timing.operands import Mask, Operands, make_operands
from te_select.timing.rounds import Timing

ENTRY = Entry("small", Workload((4, 1), (4, 5), ()), "a test")
SMALL = ["--cond", "4,1", "--then", "4,5", "--else", "", "--rounds", "1"]
WORKLOADS = (
    Workload((33, 1, 40), (33, 6, 1), (6, 40)),
    Workload((70_001,), (70_001,), (70_001,)),
    Workload((), (), ()),
    Workload((64, 1), (64, 3), (64, 3), "bfloat16"),
    Workload((64, 1), (64, 3), (), "uint8"),
    Workload((9, 7), (9, 7), (7,), "complex128"),
    Workload((3,), (2, 3, 4), (3, 1), "float32", "pdpd", 1),
)


def bench(*args: str | Path) -> Any:
    return CliRunner().invoke(app, ["bench", *(str(arg) for arg in args)])


class Liar(Peer):
    name = "liar"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        return [lambda: None for _ in sets]


class Missing(Peer):
    name = "missing"
    modules = ("no_such_module",)
    install = "no-such-package"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        raise AssertionError


class Picky(Peer):
    name = "picky"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        raise UnsupportedError("has no such type")


# Compiling with Inductor starts worker processes, for 20 s.
@pytest.mark.parametrize(
    "peer", [peer for peer in PEERS if peer.name != "torch.compile"], ids=lambda peer: peer.name
)
@pytest.mark.filterwarnings("ignore")
def test_a_peer_selects_into_each_set_or_says_why_not(peer: type[Peer]) -> None:
    made = peer()
    if (reason := made.available()) is not None:
        pytest.skip(reason)
    ran = 0
    for workload in WORKLOADS:
        sets = [make_operands(workload, Mask(), seed) for seed in range(2)]
        try:
            calls = made.prepare(workload, sets)
            calls[0]()
        except Exception as error:
            assert str(error)
            continue
        for operands, call in zip(sets, calls, strict=True):
            out = made.result(call(), operands)
            assert out.dtype == operands.out.dtype
            views = placed(workload, operands.cond, operands.then, operands.else_)
            assert first_difference(out, *views) == ""
        ran += 1
    assert ran >= 3


def test_peers_are_chosen_by_name() -> None:
    assert [peer.name for peer in choose_peers("torch, numpy")] == ["numpy", "torch"]
    assert choose_peers("none") == []
    assert len(choose_peers("all")) == len(PEERS)
    with pytest.raises(ValueError, match=r"'x'.; expected all, none or numpy"):
        choose_peers("numpy,x")


def test_a_wrong_result_is_shown_and_not_ranked() -> None:
    (row,) = run([ENTRY], [Mask()], Options(peers=[Liar(), Picky(), *choose_peers("numpy")]))
    assert "0xa5a5a5a5" in row.wrong["liar"]
    assert row.unsupported == {"picky": "has no such type"}
    assert set(row.ranked) == {"numpy"}
    assert row.best == "numpy"
    assert row.roof


@pytest.mark.parametrize("cold", [False, True])
def test_named_dims_and_cold_caches_are_measured_too(cold: bool) -> None:
    peers = choose_peers("numpy")
    (row,) = run([ENTRY], [Mask(10, 2)], Options("native", peers, 2, named=True, cold=cold))
    assert not row.wrong
    assert row.rounds == 2
    assert set(row.timings) == {
        OURS, "te-select, dims named", "numpy", "roof: copy", "roof: select"
    }  # fmt: skip
    assert (row.cache == "hot") != cold


def test_every_size_but_one_becomes_a_name() -> None:
    named = name_dims(Workload((4, 1), (4, 5), (5,), "int8"))
    assert named == Workload(("n4", 1), ("n4", "n5"), ("n5",), "int8")


def test_calls_of_several_sets_take_turns() -> None:
    seen: list[int] = []
    call = in_turns([lambda: seen.append(0), lambda: seen.append(1)])
    for _ in range(3):
        call()
    assert seen == [0, 1, 0]


def test_geometric_means_use_the_head_to_head() -> None:
    def row(ours: float, duels: dict[str, float]) -> Row:
        timings = {OURS: Timing((ours,)), "a": Timing((1.0,)), "b": Timing((4.0,))}
        return Row(
            entry=ENTRY,
            mask=Mask(),
            moved=1,
            cache="hot",
            config={},
            origin="default",
            rounds=1,
            timings=timings,
            roofs={},
            how={},
            wrong={},
            unsupported={},
            duels=duels,
        )

    means = geometric_means([row(0.5, {}), row(1.0, {"a": 2.0})])
    assert means == {
        "a": (pytest.approx(2), 2),
        "b": (pytest.approx(32**0.5), 2),
        "best peer": (pytest.approx(2), 2),
    }


def test_close_calls_are_decided_until_the_best_was_met() -> None:
    times = {OURS: 1.0, "near": 1.01, "next": 1.02, "far": 2.0}
    row = Row(
        entry=ENTRY,
        mask=Mask(),
        moved=1,
        cache="hot",
        config={},
        origin="default",
        rounds=1,
        timings={name: Timing((each,)) for name, each in times.items()},
        roofs={},
        how={},
        wrong={},
        unsupported={},
        duels={},
    )
    met: list[str] = []

    def turns(contestants: Mapping[str, float], _rounds: int) -> dict[str, Timing]:
        met.extend(set(contestants) - {OURS})
        return {name: Timing((2 * each,)) for name, each in contestants.items()} | {
            OURS: Timing((1.9,))
        }

    decided_row = decided(row, times, turns)
    assert met == ["near", "next"]
    assert decided_row.duels == pytest.approx({"near": 2.02 / 1.9, "next": 2.04 / 1.9})
    assert decided_row.best == "near"


def test_bench_reports_to_people_and_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers_module, "PEERS", (peers_module.NumPy, Missing, Liar))
    table = tmp_path / "x.csv"
    result = bench(*SMALL, "--density", "0,50", "--csv", table)
    assert result.exit_code == 0, result.output
    for shown in ("absent: missing: No module", "pip install no-such-package", "WRONG: "):
        assert shown in result.stdout
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == 2 * 5
    assert {row["contestant"] for row in rows} == {
        OURS, "numpy", "liar", "roof: copy", "roof: select"
    }  # fmt: skip
    assert sum(row["problem"].startswith("wrong: ") for row in rows) == 2


def test_json_names_the_machine_and_a_command_that_measures_again() -> None:
    args = (*SMALL, "--peers", "numpy", "--tuning-logs", "none", "--json")
    document = json.loads(bench(*args).stdout)
    assert document["machine"]["cpu"]["name"]
    assert document["machine"]["versions"]["te_select"]
    assert not document["interrupted"]
    (row,) = document["rows"]
    assert set(row["seconds"][OURS]) == {"median", "p20", "p80"}
    assert row["bytes"] == 4 + 80 + 4 + 80
    again = shlex.split(row["command"])
    assert again[:2] == ["te-select", "bench"]
    assert again[-2:] == ["--tuning-logs", "none"]
    (same,) = json.loads(bench(*again[2:], "--json").stdout)["rows"]
    assert same["workload"] == row["workload"]
    assert same["command"] == row["command"]


def test_an_interrupt_reports_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measure = run_module._measure

    def interrupt(entry: Entry, mask: Mask, options: Options) -> Row:
        if mask.density > 0:
            raise KeyboardInterrupt
        return measure(entry, mask, options)

    monkeypatch.setattr(run_module, "_measure", interrupt)
    result = bench(*SMALL, "--peers", "none", "--density", "0,50", "--json")
    assert result.exit_code == 130
    document = json.loads(result.stdout)
    assert document["interrupted"]
    assert len(document["rows"]) == 1


def test_a_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_kernel: te_select.Kernel, sets: Sequence[Operands]) -> list[Call]:
        return [lambda: None for _ in sets]

    monkeypatch.setattr(run_module, "calls_of", nothing)
    result = bench(*SMALL, "--peers", "none")
    assert result.exit_code == 1
    assert "WRONG: " in result.stdout


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "x.png"
    result = bench(*SMALL, "--peers", "numpy", "--block", "1,2", "--plot", path)
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(b"\x89PNG")


def test_a_label_tells_masks_apart() -> None:
    def row(mask: Mask) -> Row:
        return Row(
            entry=ENTRY,
            mask=mask,
            moved=1,
            cache="hot",
            config={},
            origin="default",
            rounds=1,
            timings={},
            roofs={},
            how={},
            wrong={},
            unsupported={},
            duels=None,
        )

    assert label(row(Mask())) == "small"
    assert label(row(Mask(10, 64))) == "small 10 % x64"


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--suite", "x"], 2, "--suite 'x' is not known; expected one of default, baselines"),
        (["--only", "x"], 2, "--only 'x' matches no workload; expected a glob over"),
        ([*SMALL, "--only", "x"], 2, "expected one or the other"),
        ([*SMALL, "--density", "200"], 2, "--density '200' is no list of percents from 0 to 100"),
        ([*SMALL, "--density", "nan"], 2, "is no list of percents"),
        ([*SMALL, "--block", "0"], 2, "is no list of lengths"),
        ([*SMALL, "--peers", "x"], 2, "--peers 'x' names no peer"),
        ([*SMALL, "--csv", "/no/such/x.csv"], 2, "its folder is missing"),
        ([*SMALL, "--csv", "/tmp"], 2, "--csv /tmp is a folder; expected a file"),
        ([*SMALL, "--plot", "x.bmp"], 2, "--plot x.bmp ends in none of .png, .svg, .pdf"),
        ([*SMALL, "--dtype", "f32"], 2, "dtype 'f32' is not supported; expected one of"),
        ([*SMALL, "--target", "foo"], 2, "target 'foo' is not known; expected native"),
        (["--cond", "n", "--then", "n", "--else", ""], 2, "the dims n have no size"),
    ],
)
def test_bad_usage_says_what_is_accepted(args: list[str], code: int, message: str) -> None:
    result = bench(*args)
    assert result.exit_code == code, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_block_longer_than_cond_is_one_block() -> None:
    assert len(set(Mask(block=10**30).draw(np.random.default_rng(0), 100))) == 1


def results_of(*names: str, duels: Mapping[str, float] = MappingProxyType({})) -> Results:
    timings = {OURS: Timing((1.0, 2.0, 3.0)), "numpy": Timing((9.0, 5.0, 7.0))}
    rows = [
        Row(
            entry=Entry(name, ENTRY.workload, ""),
            mask=Mask(),
            moved=1,
            cache="hot",
            config={},
            origin="tuned:emeraldrapids/w4_1024cte",
            rounds=3,
            timings=timings,
            roofs={"roof: copy": 1.0, "roof: select": 2.0},
            how={},
            wrong={},
            unsupported={},
            duels=duels,
        )
        for name in names
    ]
    return Results(rows, {}, Options(), {"versions": {}}, "a CPU", 0.0, False)


def printed(results: Results, width: int, terminal: bool) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=terminal, color_system=None, markup=False,
        highlight=False, soft_wrap=True,
    )  # fmt: skip
    print_report(results, console)
    return file.getvalue()


LONG = "a-workload-whose-name-is-longer-than-many-a-terminal-is-wide-" + 30 * "x"


def test_a_table_in_a_file_is_whole() -> None:
    text = printed(results_of(LONG, "short"), 80, terminal=False)
    (line,) = (line for line in text.splitlines() if line.strip().startswith(LONG))
    assert line.rstrip().endswith("tuned:emeraldrapids/w4_1024cte")
    assert "no room for" not in text


def test_a_table_on_a_narrow_terminal_folds_names_and_leaves_out_the_least() -> None:
    text = printed(results_of(LONG, "short"), 80, terminal=True)
    table = text.split("medians of")[0]
    assert "…" not in table
    assert max(map(len, table.split("no room")[0].splitlines())) <= 80
    assert LONG in "".join(line.split()[0] for line in table.splitlines() if line.strip())
    assert "no room for config, % of roof" in text
    for column in ("best peer", "its ms", "times best"):
        assert column in table
    assert "no room for" not in printed(results_of("short"), 140, terminal=True)


def test_ratios_are_those_of_the_medians_shown() -> None:
    text = printed(results_of("short"), 200, terminal=False)
    (line,) = (line for line in text.splitlines() if line.strip().startswith("short"))
    assert line.split()[-3:-1] == ["3.50", "3.50"]  # 7 / 2, and not a median of 9, 2.5 and 7 / 3
    assert "head to head" not in text
    with_duel = printed(results_of("short", duels={"numpy": 1.25}), 200, terminal=False)
    assert "1.25 *" in with_duel
    assert "* of medians head to head" in with_duel


def test_values_survive_a_peer_that_overwrites_the_output() -> None:
    operands = make_operands(ENTRY.workload, Mask())
    before = operands.then.copy()
    for call in peers_module.NumPyCopyTo().prepare(ENTRY.workload, [operands]):
        call()
    np.testing.assert_array_equal(operands.then, before)
