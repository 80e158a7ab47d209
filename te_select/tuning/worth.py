"""What each knob was worth in a session: the best config with another value, and the best without.

The trials say it. A knob whose best times are alike was not worth trying for this workload.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from te_select.tuning.journal import Trial


@dataclass(frozen=True)
class Knob:
    """A knob's worth.

    Parameters
    ----------
    name
        The knob.
    default, value
        The default's value, and that of the fastest config that has another one.
    seconds_without, seconds
        The fastest config with the default's value, and with another value.
    """

    name: str
    default: int | bool
    value: int | bool
    seconds_without: float
    seconds: float

    @property
    def gain(self) -> float:
        """How many times as fast the best config with another value is."""
        return self.seconds_without / self.seconds


def knobs_of(trials: Sequence[Trial]) -> list[Knob]:
    """What the knobs were worth, the most first.

    Parameters
    ----------
    trials
        The trials of one workload, the default's first.

    Returns
    -------
    list of Knob
        Those of which more than one value ran.
    """
    timed = [(trial.seconds, trial.config) for trial in trials if trial.seconds is not None]
    found = []
    for name, default in trials[0].config.items() if trials else ():
        with_it = [pair for pair in timed if pair[1].get(name, default) != default]
        without = [pair[0] for pair in timed if pair not in with_it]
        if with_it and without:
            seconds, config = min(with_it, key=lambda pair: pair[0])
            found.append(Knob(name, default, config[name], min(without), seconds))
    return sorted(found, key=lambda knob: -knob.gain)


def plot(path: Path, knobs: Mapping[str, Sequence[Knob]]) -> None:
    """Draw the worth of each knob for each workload.

    Parameters
    ----------
    path
        The picture to write; its suffix decides the format.
    knobs
        The knobs of each workload, by its name.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 - takes a second

    names = list(dict.fromkeys(knob.name for each in knobs.values() for knob in each))
    figure = Figure(figsize=(5 + len(names), 1.6 + 0.35 * len(knobs)), layout="constrained")
    axes = figure.subplots()
    gains = [[math.nan] * len(names) for _ in knobs]
    for row, each in enumerate(knobs.values()):
        for knob in each:
            column = names.index(knob.name)
            gains[row][column] = knob.gain
            text = f"{knob.gain:.2f}\nat {knob.value}"
            axes.text(column, row, text, ha="center", va="center", fontsize=6)
    image = axes.imshow(gains, cmap="RdBu", vmin=0.5, vmax=1.5, aspect="auto", alpha=0.6)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(knobs)), list(knobs), parse_math=False)
    figure.suptitle("Best config with another value: times as fast as the best without")
    figure.colorbar(image)
    figure.savefig(path)
