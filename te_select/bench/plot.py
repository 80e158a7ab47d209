"""The plot of the bench: shares of the roof, and speed over the best peer."""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from te_select.bench.row import OURS, Row
from te_select.runtime.artifact import atomic

_OURS, _PEERS, _ROOF, _SLOWER = "#0b6e4f", "#b0b7bf", "#c44536", "#c44536"
_DPI = 150
LEAST_MOVED = 10**6  # bytes; less waits for the cost of a call, not for memory


def plot(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Draw both charts into one picture, with a line for each row.

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
    left, right = figure.subplots(1, 2, width_ratios=(2, 3), sharey=True)
    ordered = sorted(rows, key=lambda row: -(row.times(row.best) or 0))
    _shares(left, ordered)
    _bars(right, ordered)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=_DPI)
    atomic.replace(path.resolve(), drawn.getvalue())


def _shares(axes: Any, rows: Sequence[Row]) -> None:
    """Percent of the roof that te-select and the best peer reach; each line names its row."""
    for what, color in (("best other system", _PEERS), ("te-select", _OURS)):
        shares = [row.share(OURS if color == _OURS else row.best) for row in rows]
        dots = [
            (100 * share, place)
            for place, (row, share) in enumerate(zip(rows, shares, strict=True))
            if share is not None and row.moved >= LEAST_MOVED
        ]
        axes.scatter(*zip(*dots, strict=True) if dots else ((), ()), color=color, label=what)
    axes.axvline(100, color=_ROOF, linewidth=1.2, label="roof: the faster of its probes")
    axes.set_xlim(left=0)
    axes.set_yticks(range(len(rows)), [row.label for row in rows], fontsize=8)
    axes.grid(alpha=0.25)
    axes.set_xlabel("% of the roof, from 1 MB on")
    axes.set_title("Bandwidth: higher is better")
    axes.figure.legend(loc="outside lower left", ncols=3)


def _bars(axes: Any, rows: Sequence[Row]) -> None:
    """How many times as fast as the best peer; each bar names that peer."""
    timed = [
        (place, times, row.best)
        for place, row in enumerate(rows)
        if (times := row.times(row.best)) is not None
    ]
    axes.set_title("Speed over the best other system (1 = equal)")
    if not timed:
        axes.text(0.5, 0.5, "no other system was measured", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    places, values, _ = zip(*timed, strict=True)
    colors = [_OURS if times >= 1 else _SLOWER for times in values]
    # Bars begin at 1, so that faster and slower go to different sides of the line.
    axes.barh(places, [times - 1 for times in values], left=1, color=colors, height=0.7)
    for place, times, peer in timed:
        axes.text(max(times, 1) * 1.02, place, f"{times:.2f} x {peer}", va="center", fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(min(0.8, *values) * 0.95, max(2.0, *values) * 1.9)
    ticks = importlib.import_module("matplotlib.ticker").LogLocator(subs=(1, 2, 5), numticks=30)
    axes.xaxis.set_major_locator(ticks)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.invert_yaxis()
    axes.set_xlabel("times as fast, logarithmic; red is slower")
