"""The plot of the bench: bandwidth below the roof, and speed over the best peer."""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from te_select.bench.report import label
from te_select.bench.row import COPY, OURS, SELECT, Row
from te_select.runtime.artifact import atomic

_OURS, _PEERS, _ROOF, _SLOWER = "#0b6e4f", "#b0b7bf", "#c44536", "#c44536"
_DPI = 150
_PLAIN = "{x:g}"
_FEW_TICKS = 1000  # ratio of largest to smallest size; above it only powers of ten are labelled


def plot(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Draw both charts into one picture.

    Parameters
    ----------
    path
        The file; its suffix, such as ``.png`` or ``.svg``, chooses the format.
    rows
        The rows, at least one.
    machine
        The machine on which they were measured.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    ValueError
        If the suffix names no format.
    ArtifactError
        If the file cannot be written.
    """
    figure = importlib.import_module("matplotlib.figure").Figure(
        figsize=(15, max(6.0, 1.5 + 0.26 * len(rows))), layout="constrained"
    )
    figure.suptitle(
        f"Select on {machine}, caches {', '.join(sorted({row.cache for row in rows}))}; medians of "
        "runs that took turns"
    )
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    numbers = _numbers(rows)
    _roofline(left, rows, numbers)
    _bars(right, rows, numbers)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=_DPI)
    atomic.replace(path.resolve(), drawn.getvalue())


def _numbers(rows: Sequence[Row]) -> dict[str, int]:
    """A number for each row, from the fastest beside its best peer on; both charts show it."""
    order = sorted(rows, key=lambda row: -((row.best and row.times(row.best)) or 0))
    return {label(row): number for number, row in enumerate(order, 1)}


def _roofline(axes: Any, rows: Sequence[Row], numbers: Mapping[str, int]) -> None:
    """GB/s over bytes moved. The roof is a band where rows that move as many bytes differ."""
    ordered = sorted(rows, key=lambda row: row.moved)
    sizes = [row.moved for row in ordered]
    for name, style, text in (
        (COPY, "--", "roof: copy"),
        (SELECT, "-", "roof: contiguous float32 select in C"),
    ):
        if name not in ordered[0].roofs:
            continue
        rates: dict[int, list[float]] = {}
        for row in ordered:
            rates.setdefault(row.moved, []).append(row.roofs[name] / 1e9)
        high, low = ([end(each) for each in rates.values()] for end in (max, min))
        axes.plot([*rates], high, style, color=_ROOF, linewidth=1.2, label=text)
        axes.fill_between([*rates], low, high, color=_ROOF, alpha=0.15, linewidth=0)
    peers = [(row.moved, row.rate(name) / 1e9) for row in ordered for name in row.ranked]
    if peers:
        x, y = zip(*peers, strict=True)
        axes.scatter(x, y, s=12, color=_PEERS, label="other systems, one dot each")
    timed = [row for row in ordered if OURS in row.timings]
    if timed:
        places = [(row.moved, row.rate(OURS) / 1e9) for row in timed]
        what = "te-select, numbered as on the right"
        axes.scatter(*zip(*places, strict=True), s=34, color=_OURS, label=what, zorder=3)
        for row, place in zip(timed, places, strict=True):
            number = str(numbers[label(row)])
            axes.annotate(number, place, (3, 3), textcoords="offset points", fontsize=7)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _label_ticks(axes.xaxis, _bytes, few=max(sizes) > _FEW_TICKS * min(sizes))
    _label_ticks(axes.yaxis, _PLAIN)
    axes.set_xlabel("bytes moved: each input read once, the output written once")
    axes.set_ylabel("GB/s")
    axes.set_title("Bandwidth: higher is better")
    axes.grid(alpha=0.25, which="major")
    axes.legend(loc="lower right", frameon=True)


def _bars(axes: Any, rows: Sequence[Row], numbers: Mapping[str, int]) -> None:
    """How many times as fast as the best peer; each bar names that peer."""
    timed = []
    for row in rows:
        times = None if row.best is None else row.times(row.best)
        if times is not None:
            timed.append((times, f"{label(row)}  {numbers[label(row)]}", row.best))
    timed.sort(reverse=True)
    axes.set_title("Speed over the best other system (1 = equal)")
    if not timed:
        axes.text(0.5, 0.5, "no other system was measured", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    values = [times for times, _, _ in timed]
    places = range(len(timed))
    colors = [_OURS if times >= 1 else _SLOWER for times in values]
    # Bars begin at 1, so that faster and slower go to different sides of the line.
    axes.barh(places, [times - 1 for times in values], left=1, color=colors, height=0.7)
    for place, (times, _, peer) in zip(places, timed, strict=True):
        axes.text(max(times, 1) * 1.02, place, f"{times:.2f} x {peer}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(min(0.8, *values) * 0.95, max(2.0, *values) * 1.9)
    _label_ticks(axes.xaxis, _PLAIN)
    axes.set_yticks(list(places), [name for _, name, _ in timed], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("times as fast, logarithmic; red is slower")


def _label_ticks(axis: Any, text: str | Callable[[float, object], str], few: bool = False) -> None:
    """Numbers as people write them, at 1, 2 and 5 of each decade or at 1 alone."""
    ticker = importlib.import_module("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(subs=(1,) if few else (1, 2, 5), numticks=30))
    axis.set_major_formatter(text)
    axis.set_minor_formatter(ticker.NullFormatter())


def _bytes(value: float, _position: object = None) -> str:
    for unit in ("B", "KB", "MB"):
        if value < 1000:  # noqa: PLR2004 - the step between units
            return f"{value:g} {unit}"
        value /= 1000
    return f"{value:g} GB"
