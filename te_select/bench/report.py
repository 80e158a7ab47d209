"""The reports of the bench: cells of a table and notes for people, JSON for machines."""

import json
import shlex
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from te_select.bench.row import OURS, Options, Row
from te_select.bench.suite import DEFAULT
from te_select.operator.broadcast import count_of
from te_select.records.doubt import are_busy

FIGURES = ("ms", "GB/s", "% of roof", "its ms", "times best", "times NumPy")
# The columns that a narrow terminal leaves out, in this order.
LESS_IMPORTANT = ("config", "% of roof", "GB/s", "times NumPy")
_QUANTILES = {"median": 0.5, "p20": 0.2, "p80": 0.8}


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
    words += ["--rounds", str(row.rounds), "--target", options.target]
    if options.tuning_logs is not None:
        words += ["--tuning-logs", options.tuning_logs or "none"]
    if options.cold:
        words.append("--cold")
    return shlex.join(words)


def geometric_means(rows: Sequence[Row]) -> dict[str, tuple[float, int]]:
    """By peer, and for the best of each row: the mean speed-up, and over how many rows."""
    ratios = defaultdict(list)
    for row in rows:
        peers = {name: name for name in row.ranked} | {"best peer": row.best}
        for name, peer in peers.items():
            if times := row.times(peer):
                ratios[name].append(times)
    return {name: (statistics.geometric_mean(each), len(each)) for name, each in ratios.items()}


def document(results: Results) -> dict[str, Any]:
    """Everything that was measured, and the machine, as JSON types."""
    return {
        "machine": results.machine,
        "device": results.device,
        "busy_cores": results.busy,
        "target": results.options.target,
        "interrupted": results.interrupted,
        "absent": results.absent,
        "geometric_means": {
            name: {"times": times, "rows": count}
            for name, (times, count) in geometric_means(results.rows).items()
        },
        "rows": [_row(row, results.options) for row in results.rows],
    }


def notes(results: Results) -> Iterator[str]:
    """What stands under the table, by lines."""
    if results.rows:
        yield from _of_rows(results)
    else:
        yield "nothing was measured"
    if results.interrupted:
        yield "interrupted: rows are missing"


def _of_rows(results: Results) -> Iterator[str]:
    rows = results.rows
    caches = ", ".join(sorted({row.cache for row in rows}))
    rounds = sorted({row.rounds for row in rows})
    among = " to ".join(map(str, sorted({rounds[0], rounds[-1]})))
    roof = f"a copy by {', '.join(rows[0].how.values())}"
    if len(rows[0].roofs) > 1:
        roof = "the faster of a copy and a select in C"
    roof += " on as many bytes"
    yield f"medians of {among} rounds in turns; caches {caches}; the roof is {roof}"
    yield "times: the other's median over te-select's"
    if any(row.duels for row in rows):
        yield "* of medians head to head, in rounds of the two alone after those shown"
    if queued := sorted({name for row in rows for name in row.queued}):
        yield f"with the cost of launches, not from a CUDA graph: {', '.join(queued)}"
    if are_busy(results.busy):
        yield (
            f"others were using {results.busy:.1f} cores when this began; what waits for all cores "
            "was slowed more than the rest: measure again on an idle machine"
        )
    for name, (times, count) in geometric_means(rows).items():
        yield f"{times:6.2f}x the speed of {name} (geometric mean of {count_of(count, 'row')})"
    for name, reason in results.absent.items():
        yield f"absent: {name}: {reason}"
    refused = Counter(name for row in rows for name in row.unsupported)
    for name, count in refused.items():
        reason = next(row.unsupported[name] for row in rows if name in row.unsupported)
        yield f"does not run {count} of {len(rows)} rows: {name}: {reason}"
    for row in rows:
        yield from (f"WRONG: {row.label}: {name}: {what}" for name, what in row.wrong.items())
    yield "to measure a row again:"
    yield from (f"  {command(row, results.options)}" for row in rows)


def cells(row: Row) -> dict[str, str]:
    """The texts of a row, by column."""
    share = row.share(OURS)
    return {
        "workload": row.label,
        "ms": _ms(row, OURS) or "WRONG",
        "GB/s": f"{row.rate(OURS) / 1e9:.1f}" if OURS in row.timings else "",
        "% of roof": "" if share is None else f"{100 * share:.0f}",
        "best peer": row.best or "",
        "its ms": _ms(row, row.best),
        "times best": _times(row, row.best),
        "times NumPy": _times(row, "numpy"),
        "config": row.origin,
    }


def _ms(row: Row, name: str | None) -> str:
    timing = row.timings.get(name or "")
    return f"{timing.median * 1e3:#.3g}".rstrip(".") if timing else ""


def _times(row: Row, other: str | None) -> str:
    times = row.times(other)
    return "" if times is None else f"{times:.2f}" + (" *" if other in row.duels else "")


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
        "bytes_per_second": {name: row.rate(name) for name in row.timings},
        "roof": {"bytes_per_second": row.roof, "how": row.how},
        "share_of_roof": row.share(OURS),
        "best_peer": row.best,
        "times": {name: row.times(name) for name in row.timings if name != OURS},
        "head_to_head": row.duels,
        "wrong": row.wrong,
        "unsupported": row.unsupported,
        "queued": list(row.queued),
        "command": command(row, options),
    }
