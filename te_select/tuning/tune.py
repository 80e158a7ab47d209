"""``te_select.tune``: one workload, in a session of its own."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any

from te_select.errors import ArgumentError
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload
from te_select.records.sizes import Ranges
from te_select.tuning.record import TIMEOUT, TRIALS, Observer, Options, Record
from te_select.tuning.session import Session


def tune(  # noqa: PLR0913 - the public contract's, by keyword
    workload: Workload,
    target: str | dict[str, Any] = "native",
    *,
    trials: int = TRIALS,
    tuning_logs: str | Path | None = None,
    runner: str = "local",
    timeout: float = TIMEOUT,
    jobs: int | None = None,
    seed: int = 0,
    force: bool = False,
    keep_trials: bool = False,
    density: float = 50.0,
    block: int = 1,
    cond_file: str | Path = "",
    sizes: Mapping[str, tuple[int, int]] | None = None,
    observe: Observer | None = None,
) -> Record:
    """Find the fastest config for a workload and record it.

    Every config is built in a process of its own, compared with NumPy bit for bit, and then timed.
    Every trial is kept at once, so an interrupted session goes on where it stopped.

    Parameters
    ----------
    workload
        What to tune. Named dims are given representative sizes, unless ``sizes`` has others.
    target
        As for `te_select.compile`. The machine that measures must be able to run it.
    trials
        Configs to measure, the default among them.
    tuning_logs
        The folder to write, made if it is missing; None for the user's own, which `compile` reads.
    runner
        ``"local"``, or ``"rpc://HOST:PORT/KEY"`` for machines behind a TVM RPC tracker.
    timeout
        Seconds after which a config counts as failed.
    jobs
        Configs to build at once; None for one per CPU.
    seed
        Decides which configs are tried if there are more than ``trials``.
    force
        Tune a workload that has a record already, too.
    keep_trials
        Keep every trial in ``<tuning_logs>/<target>/all_trials``, rather than only the winner.
    density, block
        The cond that configs are timed with: percent of it that is true, and how many neighbouring
        elements are drawn together.
    cond_file
        A ``.npy`` of booleans, as many as cond has, which are cond instead.
    sizes
        The least and the largest size of each named dim. Configs are timed at both and between, and
        the best on average is recorded.
    observe
        Called with the progress, at every step.

    Returns
    -------
    Record
        The record, new or from before. If the times cannot be trusted, because other programs used
        the cores or the rounds lay far apart, `Record.unsure` says so; no compilation uses such a
        record, and the next session tunes the workload again.

    Raises
    ------
    TuningError
        If the folder cannot be written, the runner does not answer, or the default config fails.
    ArgumentError
        If an argument is out of range.
    """
    options = Options(
        trials, timeout, jobs, seed, force, keep_trials, density, block, str(cond_file)
    )
    ranges = _ranges(sizes or {})
    with Session(target, tuning_logs, runner, options) as session:
        return session.tune(session.task(workload, ranges), observe or (lambda progress: None))


def _ranges(sizes: Mapping[str, tuple[int, int]]) -> Ranges:
    """The sizes that a caller gives; raises ArgumentError if they are none."""
    try:
        ranges = tuple((name, *map(index, bounds)) for name, bounds in sizes.items())
        if any(type(name) is not str or len(bounds) != 2 for name, *bounds in ranges):  # noqa: PLR2004
            raise TypeError
    except (AttributeError, TypeError) as error:
        raise ArgumentError(
            f"sizes is {shown(sizes)}; expected the least and the largest size of each named dim, "
            'such as {"batch": (1, 64)}'
        ) from error
    return ranges  # type: ignore[return-value]  # each has three members
