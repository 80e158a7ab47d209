"""``te_select.tune``: one workload, in a session of its own."""

import difflib
import inspect
from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any

from te_select.errors import ArgumentError, warn
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload
from te_select.records.log import Record
from te_select.records.sizes import Ranges
from te_select.tuning.options import LOCAL, Options, measure_profile
from te_select.tuning.session import Session
from te_select.tuning.trials import Observer


def tune(  # noqa: PLR0913 - one for each choice
    workload: Workload,
    target: str | dict[str, Any] = "native",
    *,
    trials: int | None = None,
    effort: str = "full",
    fixed: Mapping[str, int | bool] | None = None,
    accept_unsure: bool = False,
    tuning_logs: str | Path | None = None,
    runner: str = LOCAL,
    profile: bool = False,
    sizes: Mapping[str, tuple[int, int]] | None = None,
    observe: Observer | None = None,
    **options: Any,
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
        The most configs to measure, the default among them; None for as many as the effort has.
    effort
        ``"full"`` for 64 configs in at most two minutes, ``"quick"`` for 10 in about three seconds.
    fixed
        Knobs that are held while the others are tried, such as ``{"unroll": 4}``. The default is
        measured as it is.
    accept_unsure
        Record what has won beside busy programs, too. `Record.accepted` then has the doubts.
    tuning_logs
        The folder to write, made if it is missing; None for the user's own, which `compile` reads.
    runner
        ``"local"``, or ``"rpc://HOST:PORT/KEY"`` for machines behind a TVM RPC tracker.
    profile
        Measure the profile of this machine first, if it is only reasoned, and keep it in the user's
        configuration.
    sizes
        The least and the largest size of each named dim. Configs are timed at both and between, and
        the best on average is recorded.
    observe
        Called with the progress, at every step.
    options
        ``timeout``, ``jobs``, ``seed``, ``force``, ``patient``, ``density`` and ``block``, as
        `te_select.tuning.options.Options` has them.

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

    Warns
    -----
    RuntimeWarning
        If the outcome is unsure.
    """
    known = inspect.signature(tune).parameters | inspect.signature(Options).parameters
    for name in options.keys() - known.keys():
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise TypeError(f"tune() got an unexpected keyword argument {name!r}{hint}")
    ranges = _ranges(sizes or {})
    chosen = Options(trials, effort, fixed=fixed or {}, accept_unsure=accept_unsure, **options)
    if profile and runner == LOCAL:
        measure_profile()
    with Session(target, tuning_logs, runner, chosen) as session:
        record = session.tune(session.task(workload, ranges), observe or (lambda progress: None))
    if record.unsure:
        warn(f"{record.key} is unsure, and no kernel uses it: {record.unsure}; tune it again")
    return record


def _ranges(sizes: Mapping[str, tuple[int, int]]) -> Ranges:
    """The sizes that a caller gives; raises ArgumentError if they are none."""
    try:
        return tuple((name + "", index(low), index(high)) for name, (low, high) in sizes.items())
    except (AttributeError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"sizes is {shown(sizes)}; expected the least and the largest size of each named dim, "
            'such as {"batch": (1, 64)}'
        ) from error
