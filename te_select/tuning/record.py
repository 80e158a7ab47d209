"""The options, progress and results of a session: plain data, without tvm."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.errors import ArgumentError, TuningError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import shown
from te_select.operator.workload import Workload
from te_select.records import log
from te_select.timing.operands import USUAL, Mask
from te_select.tuning.worth import Knob

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
    density, block, cond_file
        The cond of the timing, as `te_select.timing.operands.Mask` has it.

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
    density: float = 50.0
    block: int = 1
    cond_file: str = ""

    @property
    def mask(self) -> Mask:
        """The cond of the timing."""
        file = str(Path(self.cond_file).absolute()) if self.cond_file else ""
        return Mask(self.density, self.block, file)

    def __post_init__(self) -> None:
        if type(self.trials) is not int or self.trials < 1:
            raise ArgumentError(f"trials is {self.trials!r}; expected at least 1, the default")
        if type(self.seed) is not int or not 0 <= self.seed <= LARGEST_SEED:
            raise ArgumentError(f"seed is {self.seed!r}; expected 0 to {LARGEST_SEED}")
        if type(self.density) not in (int, float) or not 0 <= self.density <= 100:  # noqa: PLR2004
            raise ArgumentError(f"density is {self.density!r}; expected 0 to 100, in percent")
        if type(self.block) is not int or self.block < 1:
            raise ArgumentError(f"block is {self.block!r}; expected an int of at least 1")
        if self.cond_file and (self.density, self.block) != (USUAL.density, USUAL.block):
            raise ArgumentError("cond_file says all of cond; leave density and block out")
        if self.cond_file and not Path(self.cond_file).is_file():
            raise ArgumentError(f"cond_file {shown(self.cond_file)} is no file; expected a .npy")
        try:
            self.mask.check()
        except ValueError as error:
            raise ArgumentError(f"cond_file {error}") from error


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
    cond
        Which cond it was timed with; empty for the usual one, random with half of it true.
    sizes
        The sizes of named dims for which it is the best, ``batch=1:64``; empty for a representative
        size.
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
    cond: str = ""
    sizes: str = ""

    @property
    def default_won(self) -> bool:
        """Whether no config was faster than the default, which is then what is recorded."""
        return self.seconds == self.default_seconds


@dataclass(frozen=True)
class Outcome:
    """What became of a workload.

    Parameters
    ----------
    name
        The workload.
    record
        Its record; None if it has none.
    error
        Why it has none, if that is a failure.
    fresh
        Whether it was tuned now, rather than before.
    roof_bytes_per_second
        What a probe moved; None if it was not measured.
    resumed
        How many of its trials an earlier run had measured.
    default_seconds
        What a call took before the search; None if it was not measured.
    passed_over
        Why it has no record, if that is no failure.
    knobs
        What each knob was worth, the most first; empty if the trials were not kept.
    """

    name: str
    record: Record | None
    error: str | None = None
    fresh: bool = True
    roof_bytes_per_second: float | None = None
    resumed: int = 0
    default_seconds: float | None = None
    passed_over: str = ""
    knobs: Sequence[Knob] = ()


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
_TEXTS = ("unsure", "cond", "sizes")
SAID = ("default_seconds", "trials", "failed", "busy_cores", "spread", *_TEXTS)
"""The fields that a record's session has kept. Texts that are empty are not; older sessions may
lack the last five."""


def said(record: Record) -> dict[str, Any]:
    """What a record's session keeps of it."""
    kept = {name: getattr(record, name) for name in SAID}
    return {name: value for name, value in kept.items() if value or name not in _TEXTS}


def recorded(folder: Path, sized: Workload, tvm: str, names: Collection[str] = ()) -> Record | None:
    """Return the record of a workload in the logs of a target, if that TVM wrote it.

    Parameters
    ----------
    folder
        The folder of the target.
    sized
        The workload, of int dims.
    tvm
        The version of TVM.
    names
        The names of the dims that have ranges of sizes.

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
    found = log.read(folder)
    found.warn()
    key = access_pattern(sized).key
    name = key, frozenset(names)
    own = [entry for entry in found.entries if entry.name == name and entry.tvm == tvm]
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
