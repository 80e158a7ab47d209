"""The options, progress and results of a session: plain data, without tvm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from te_select.errors import ArgumentError, TuningError
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.records import log
from te_select.records.sizes import representative

TRIALS = 64
TIMEOUT = 30.0  # seconds; a build took 0.1 s, and a run that moves 8 GB took 20 s
LARGEST_SEED = (1 << 30) - 1


class UntunableError(TuningError):
    """A workload that cannot be tuned; the session may go on with others."""


@dataclass(frozen=True)
class Options:
    """The numbers of a session.

    Parameters
    ----------
    trials
        Configs to measure, the default among them.
    timeout
        Seconds after which a config counts as failed.
    jobs
        Configs to build at once; None for one per CPU.
    seed
        Decides which configs are tried if there are more than ``trials``.
    force
        Tune workloads that have a record already, too.
    keep_trials
        Keep every trial beside the records, rather than only the winner.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """

    trials: int = TRIALS
    timeout: float = TIMEOUT
    jobs: int | None = None
    seed: int = 0
    force: bool = False
    keep_trials: bool = False

    def __post_init__(self) -> None:
        if type(self.trials) is not int or self.trials < 1:
            raise ArgumentError(f"trials is {self.trials!r}; expected at least 1, the default")
        if type(self.seed) is not int or not 0 <= self.seed <= LARGEST_SEED:
            raise ArgumentError(f"seed is {self.seed!r}; expected 0 to {LARGEST_SEED}")


@dataclass(frozen=True)
class Record:
    """What tuning a workload has found.

    Parameters
    ----------
    config
        The knobs.
    seconds
        Its median seconds for a call.
    default_seconds
        Median seconds of the default config, measured in turns with it.
    trials, failed
        How many configs were measured, the default among them, and how many of them failed.
    name
        ``<target>/<record>``, as `Kernel.origin` has it.
    workload
        The workload that was measured, with int dims.
    busy_cores
        How many cores other programs used meanwhile, beyond those to spare; of several machines of
        a fleet, on the busiest. None in older records of fleets.
    spread
        How far the rounds of the last comparison lay apart: the middle half of them, as a share of
        the median. None in records that do not say.
    unsure
        Why the outcome cannot be trusted; empty if it can. Then `config` is the default's, no
        compilation uses the record, and the workload is tuned again next time.
    """

    config: Mapping[str, int | bool]
    seconds: float
    default_seconds: float
    trials: int
    failed: int
    name: str
    workload: Workload
    busy_cores: float | None = None
    spread: float | None = None
    unsure: str = ""

    @property
    def default_won(self) -> bool:
        """Whether no config was faster than the default, which is then what is recorded."""
        return self.seconds == self.default_seconds


@dataclass(frozen=True)
class Progress:
    """A session's progress with a workload.

    Parameters
    ----------
    workload
        The workload that is measured, with int dims.
    done, total
        Trials that were measured, and all trials.
    failed, failure
        How many of them failed, and why the first failed.
    default, best
        Median seconds of a call, as far as known.
    phase
        ``"trials"`` or ``"finalists"``.
    resumed
        How many of the trials an earlier run had measured.
    """

    workload: Workload
    done: int = 0
    total: int = 0
    failed: int = 0
    failure: str | None = None
    default: float | None = None
    best: float | None = None
    phase: str = "trials"
    resumed: int = 0


Observer = Callable[[Progress], None]
SAID = ("default_seconds", "trials", "failed", "busy_cores", "spread", "unsure")
"""The fields that a record's session has kept; older sessions may lack the last three."""


def recorded(folder: Path, workload: Workload, tvm: str) -> Record | None:
    """Return the record of a workload in the logs of a target, if that TVM wrote it.

    Parameters
    ----------
    folder
        The folder of the target.
    workload
        The workload.
    tvm
        The version of TVM.

    Returns
    -------
    Record or None
        None if there is no record, or if the log does not say how it was found, as in logs of
        other tools.

    Warns
    -----
    RuntimeWarning
        For every damaged line, which is left out.
    """
    sized = representative(workload)
    found = log.read(folder)
    found.warn()
    key = access_pattern(sized).key
    own = [entry for entry in found.entries if entry.key == key and entry.tvm == tvm]
    fastest = min(own, key=lambda entry: entry.seconds, default=None)
    if fastest is None or not {"config", *SAID[:3]} <= set(fastest.session):
        return None
    return Record(
        config=dict(fastest.session["config"]),
        seconds=fastest.seconds,
        name=f"{folder.name}/{key}",
        workload=sized,
        **{name: fastest.session[name] for name in SAID if name in fastest.session},
    )
