"""The plot of the bench: shares of the roof, te-select's and the best peer's."""

import importlib
import io
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from te_select.base import atomic
from te_select.bench.row import OURS, Row

_OURS, _PEERS, _SLOWER = "#0b6e4f", "#8a939c", "#c44536"
_DPI = 150
LEAST_BYTES = 10**6  # below it a call costs more than its bytes
_USUAL = (0.65, 1.25)  # shares of the roof; a workload outside is named
_FAR = 3  # speed-up over the best peer from which a workload is named
_LETTER = 0.015  # of the height; what a letter of a name takes, and a little more
_FEW = 16  # workloads whose names have room below the axis
# A name goes upwards from the higher dot of its workload, where nothing else is drawn.
_UPWARDS = {
    "textcoords": "offset points",
    "ha": "center",
    "va": "bottom",
    "rotation": 90,
    "fontsize": 8,
}


def plot(path: Path, rows: Sequence[Row], machine: str) -> None:
    """Draw the workloads that move 1 MB or more, from the lowest share of the roof to the highest.

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
    figure = importlib.import_module("matplotlib.figure").Figure((10, 5), layout="constrained")
    caches = ", ".join(sorted({row.cache for row in rows}))
    axes = figure.subplots()
    axes.set_title(f"Select on {machine}: bandwidth as a share of the roof (caches {caches})")
    _shares(axes, rows)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix[1:].lower(), dpi=_DPI)
    atomic.replace(path.resolve(), drawn.getvalue())


def _shares(axes: Any, rows: Sequence[Row]) -> None:
    """Two dots for each workload, joined by a line; red where the peer is faster."""
    found = [
        (share, row.label, row)
        for row in rows
        if row.moved >= LEAST_BYTES and (share := row.share(OURS)) is not None
    ]
    if not found:
        axes.text(0.5, 0.5, "no workload moves 1 MB", ha="center", transform=axes.transAxes)
        axes.set_axis_off()
        return
    found.sort(key=lambda each: each[:2])
    beside = []
    top = max(1.1, *(ours for ours, _, _ in found)) * 1.1
    for place, (ours, name, row) in enumerate(found):
        speed_up = row.times(row.best)
        if speed_up:
            color = _OURS if speed_up >= 1 else _SLOWER
            axes.vlines(place, *sorted((ours, ours / speed_up)), color=color, alpha=0.4)
            beside.append((place, ours / speed_up))
        text = name
        if speed_up and not 1 <= speed_up < _FAR:
            text = f"{name}: {speed_up:.2g}x {row.best}"
        elif _USUAL[0] <= ours <= _USUAL[1]:
            continue
        height = max(ours, ours / speed_up) if speed_up else ours
        axes.annotate(text, (place, height), (0, 6), **_UPWARDS)
        top = max(top, height / (1 - min((len(text) + 3) * _LETTER, 0.8)))
    shares = [ours for ours, _, _ in found]
    what = f"te-select: median {median(shares):.0%}"
    axes.scatter(range(len(found)), shares, s=40, color=_OURS, label=what, zorder=3)
    if beside:
        what = f"the best other system: median {median(share for _, share in beside):.0%}"
        axes.scatter(*zip(*beside, strict=True), s=24, color=_PEERS, label=what, zorder=2)
    axes.axhline(
        1, color="black", linewidth=0.8, linestyle="--", label="the roof: C, as many bytes"
    )
    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter("{x:.0%}")
    names = [name for _, name, _ in found] if len(found) <= _FEW else []
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_xlabel(f"{len(found)} workloads that move 1 MB or more, by te-select's share")
    axes.grid(alpha=0.25, axis="y")
    axes.figure.legend(loc="outside lower center", ncols=3, frameon=False)
