"""The reports of the bench: a table for people, JSON and CSV for machines."""

from __future__ import annotations

import csv
import io
import json
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from te_select import kinds
from te_select.bench.options import Options
from te_select.bench.row import NAMED, OURS, Row, label_of
from te_select.bench.suite import DEFAULT
from te_select.records.doubt import BUSY
from te_select.runtime.artifact import atomic, packages

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_COLUMNS = (
    "workload",
    "ms",
    "GB/s",
    "% of roof",
    "best peer",
    "its ms",
    "times best",
    "times NumPy",
    "config",
)
_LEFT = ("workload", "best peer", "config")
_LESS_IMPORTANT = ("config", "% of roof", "GB/s", "times NumPy")
"""The columns that a narrow terminal leaves out, in this order."""
_UNBOUNDED = 10_000  # columns
_QUANTILES = {"median": 0.5, "p20": 0.2, "p80": 0.8}
_PACKAGES = (
    "halide",
    "iree-base-compiler",
    "iree-base-runtime",
    "onednn",
    "onnx",
    "matplotlib",
)


@dataclass(frozen=True)
class Results:
    """What a bench measured, and how.

    Parameters
    ----------
    rows
        The rows, in order.
    absent
        By peer: why it is not available.
    options
        The options of the bench.
    machine
        The machine, as JSON types.
    device
        The device that runs the kernels, in words.
    busy
        How many cores other programs were using when the bench began.
    interrupted
        Whether rows are missing.
    """

    rows: Sequence[Row]
    absent: Mapping[str, str]
    options: Options
    machine: Mapping[str, Any]
    device: str
    busy: float
    interrupted: bool


def label(row: Row) -> str:
    """The row's name, with its mask if that is not the usual one."""
    return label_of(row.entry, row.mask)


def command(row: Row, options: Options) -> str:
    """The shell command that measures a row again."""
    words = ["te-select", "bench"]
    if row.entry in DEFAULT:
        words += ["--only", row.entry.name]
    else:
        named = {**row.entry.workload.to_json(), "name": row.entry.name}
        words += ["--workload", json.dumps(named)]
    words += ["--density", f"{row.mask.density:g}", "--block", str(row.mask.block)]
    words += ["--peers", ",".join(peer.name for peer in options.peers) or "none"]
    known = [{*kinds.load(kind.peers)} for kind in kinds.KINDS.values()]
    if {type(peer) for peer in options.peers} in known:
        words[-1] = "all"
    words += ["--rounds", str(row.rounds), "--target", options.target]
    if options.tuning_logs is not None:
        words += ["--tuning-logs", options.tuning_logs or "none"]
    words += ["--named"] * options.named + ["--cold"] * options.cold
    return shlex.join(words)


def geometric_means(rows: Sequence[Row]) -> dict[str, tuple[float, int]]:
    """By peer, and for the best of each row: times as fast, and over how many rows."""
    ratios: dict[str, list[float]] = {}
    for row in rows:
        for name in (*row.ranked, *([] if row.best is None else ["best peer"])):
            times = row.times(row.best if name == "best peer" and row.best else name)
            if times is not None:
                ratios.setdefault(name, []).append(times)
    return {
        name: (math.exp(sum(map(math.log, each)) / len(each)), len(each))
        for name, each in ratios.items()
    }


def document(results: Results) -> dict[str, Any]:
    """Everything that was measured, and the machine, as JSON types."""
    versions = {
        **results.machine["versions"],
        **{name: packages.version(name) for name in _PACKAGES},
    }
    machine = {**results.machine, "versions": versions}
    return {
        "machine": machine,
        "device": results.device,
        "busy_cores": results.busy,
        "target": results.options.target,
        "interrupted": results.interrupted,
        "absent": dict(results.absent),
        "geometric_means": {
            name: {"times": times, "rows": count}
            for name, (times, count) in geometric_means(results.rows).items()
        },
        "rows": [_row(row, results.options) for row in results.rows],
    }


def write_csv(path: Path, results: Results) -> None:
    """Write one line per row and contestant."""
    names = ("name", "shapes", "density", "block", "cache", "bytes", "contestant", "rounds")
    measured = (*_QUANTILES, "gb_per_s", "share_of_roof", "te_select_times", "problem", "command")
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow((*names, *measured))
    for row in results.rows:
        start = (row.entry.name, str(row.entry.workload), row.mask.density, row.mask.block)
        again = command(row, results.options)
        for name, timing in row.timings.items():
            # A probe moves whole vectors, so its bytes are not quite the workload's.
            rate = row.roofs.get(name, row.rate(name))
            quantiles = [timing.quantile(q) for q in _QUANTILES.values()]
            share = rate / row.roof if row.roof else None
            values = (*quantiles, rate / 1e9, share, row.times(name), "", again)
            writer.writerow((*start, row.cache, row.moved, name, row.rounds, *values))
        for name, problem in _problems(row):
            empty = [""] * (len(measured) - 2)
            writer.writerow((*start, row.cache, row.moved, name, 0, *empty, problem, again))
    atomic.replace(path.resolve(), file.getvalue().encode())


def print_report(results: Results, console: Console | None = None) -> None:
    """Print the table, and notes under it.

    Parameters
    ----------
    results
        What was measured.
    console
        Where to print; stdout by default. A file gets the whole table, however wide. A terminal
        gets as many columns as it has room for.
    """
    from rich.console import Console  # noqa: PLC0415 - rich is slow to import

    rows, options = results.rows, results.options
    console = console or Console(markup=False, highlight=False, soft_wrap=True)
    if not rows:
        console.print("nothing was measured" + (": interrupted" if results.interrupted else ""))
        return
    _print_table(rows, options, console)
    caches = ", ".join(sorted({row.cache for row in rows})) or "none"
    rounds = sorted({row.rounds for row in rows})
    among = " to ".join(map(str, sorted({rounds[0], rounds[-1]})))
    console.print(
        f"medians of {among} rounds in turns; caches {caches}; the roof is {_roof(rows[0])} on "
        "as many bytes"
    )
    console.print("times: the other's median over te-select's")
    if any(row.duels for row in rows):
        console.print("* of medians head to head, in rounds of the two alone after those shown")
    if queued := sorted({name for row in rows for name in row.queued}):
        console.print(f"with the cost of launches, not from a CUDA graph: {', '.join(queued)}")
    if results.busy > BUSY:
        console.print(
            f"others were using {results.busy:.1f} cores when this began; what waits for all cores "
            "was slowed more than the rest: measure again on an idle machine"
        )
    for name, (times, count) in geometric_means(rows).items():
        console.print(f"{times:6.2f} times as fast as {name} (geometric mean of {count} rows)")
    for name, reason in results.absent.items():
        console.print(f"absent: {name}: {reason}")
    for name, reason, count in _unsupported(rows):
        console.print(f"does not run {count} of {len(rows)} rows: {name}: {reason}")
    for row in rows:
        for name, problem in row.wrong.items():
            console.print(f"WRONG: {label(row)}: {name}: {problem}")
    console.print("to measure a row again:")
    for row in rows:
        console.print(f"  {command(row, options)}")
    if results.interrupted:
        console.print("interrupted: rows are missing")


def _roof(row: Row) -> str:
    if len(row.roofs) > 1:
        return "the faster of a copy and a select in C"
    return f"a copy by {', '.join(row.how.values())}"


def _print_table(rows: Sequence[Row], options: Options, console: Console) -> None:
    columns = [*_COLUMNS, *(["named"] if options.named else [])]
    less_important = list(_LESS_IMPORTANT) if console.is_terminal else []
    left_out = []
    while (width := _width(console, _table(rows, columns))) > console.width and less_important:
        left_out.append(less_important.pop(0))
        columns.remove(left_out[-1])
    if not console.is_terminal:
        console.width = max(console.width, width)
    console.print(_table(rows, columns))
    if left_out:
        console.print(f"no room for {', '.join(left_out)}: use a wider terminal, a file, or --json")


def _table(rows: Iterable[Row], columns: Sequence[str]) -> Table:
    from rich import box  # noqa: PLC0415 - rich is slow to import
    from rich.table import Table  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        folds = column == "workload"  # only this column's text may go over several lines
        table.add_column(
            column,
            justify="left" if column in _LEFT else "right",
            no_wrap=not folds,
            overflow="fold",
        )
    for row in rows:
        cells = _cells(row)
        table.add_row(*(cells.get(column, "") for column in columns))
    return table


def _width(console: Console, table: Table) -> int:
    """The width of a table that is not folded, in columns."""
    unbounded = console.options.update(max_width=_UNBOUNDED)
    return console.measure(table, options=unbounded).maximum


def _cells(row: Row) -> dict[str, str]:
    """The texts of a row, by column."""
    cells = {
        "workload": label(row),
        "times NumPy": _times(row, "numpy"),
        "config": row.origin,
        "named": _times(row, NAMED),
    }
    ours = row.timings.get(OURS)
    if ours is None:
        cells["ms"] = "WRONG"
    else:
        cells |= {"ms": _ms(ours.median), "GB/s": f"{row.rate(OURS) / 1e9:.1f}"}
        if row.roof:
            cells["% of roof"] = f"{100 * row.rate(OURS) / row.roof:.0f}"
    if (best := row.best) is not None:
        median = _ms(row.timings[best].median)
        cells |= {"best peer": best, "its ms": median, "times best": _times(row, best)}
    return cells


def _times(row: Row, other: str) -> str:
    times = row.times(other)
    if times is None:
        return ""
    return f"{times:.2f}" + (" *" if other in row.duels else "")


def _row(row: Row, options: Options) -> dict[str, Any]:
    return {
        "name": row.entry.name,
        "why": row.entry.why,
        "workload": row.entry.workload.to_json(),
        "density": row.mask.density,
        "block": row.mask.block,
        "bytes": row.moved,
        "cache": row.cache,
        "config": dict(row.config),
        "origin": row.origin,
        "rounds": row.rounds,
        "seconds": {
            name: {key: timing.quantile(q) for key, q in _QUANTILES.items()}
            for name, timing in row.timings.items()
        },
        "bytes_per_second": {name: row.roofs.get(name, row.rate(name)) for name in row.timings},
        "roof": {"bytes_per_second": row.roof, "how": dict(row.how)},
        "share_of_roof": row.rate(OURS) / row.roof if row.roof and OURS in row.timings else None,
        "best_peer": row.best,
        "times": {name: row.times(name) for name in row.timings if name != OURS},
        "head_to_head": dict(row.duels),
        "wrong": dict(row.wrong),
        "unsupported": dict(row.unsupported),
        "queued": list(row.queued),
        "command": command(row, options),
    }


def _problems(row: Row) -> list[tuple[str, str]]:
    wrong = [(name, f"wrong: {text}") for name, text in row.wrong.items()]
    return wrong + [(name, f"unsupported: {text}") for name, text in row.unsupported.items()]


def _unsupported(rows: Iterable[Row]) -> list[tuple[str, str, int]]:
    """Each peer with its first reason and the number of its rows."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for name, reason in row.unsupported.items():
            found.setdefault(name, []).append(reason)
    return [(name, reasons[0], len(reasons)) for name, reasons in found.items()]


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:#.3g}".rstrip(".")
