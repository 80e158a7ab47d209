"""What a session is given: its numbers, and the runner that measures."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType

from te_select.base import kinds, variables
from te_select.errors import ArgumentError, TuningError
from te_select.operator.broadcast import count_of, shown
from te_select.timing.inputs import USUAL
from te_select.tuning.measuring.measurer import LocalMeasurer, Measurer
from te_select.tuning.measuring.process import LONGEST

TIMEOUT = 30.0  # seconds; a build took 0.1 s, and a run that moves 8 GB took 20 s
LARGEST_SEED = (1 << 30) - 1
LARGEST_JOBS = 1024  # as many as fit into a machine of 512 GB
LOCAL = "local"
_RPC = re.compile(r"rpc://(?P<host>\[[0-9a-fA-F:]+\]|[^/:\s]+):(?P<port>\d{1,5})/(?P<key>[^/:\s]+)")
_LARGEST_PORT = 65535


@dataclass(frozen=True)
class Effort:
    """How much is done for a workload, unless a session is told otherwise.

    Parameters
    ----------
    trials
        Configs to measure, the default among them.
    seconds
        The most, for all that is done.
    for_trials
        The share of this time in which configs are tried; the rest is for the finals.
    promise
        What an untried config must promise, as a speed-up over the best.
    finalists
        How many configs meet the default in the finals.
    rounds
        Of the three comparisons of the finals.
    """

    trials: int
    seconds: float
    for_trials: float
    promise: float
    finalists: int
    rounds: tuple[int, int, int]


GAIN = 1.01  # speed-up over the best; what promises less is not worth a trial
AFTER = "after TVM's import and the first look"  # which nothing can cut short
# Finals of 25 rounds let a kernel beat itself in 1 of 144 pairs.
QUICK = "quick"
EFFORTS = {
    QUICK: Effort(10, 3.0, 0.5, 1.05, 2, (3, 5, 11)),
    "full": Effort(64, 120.0, 0.8, GAIN, 4, (5, 15, 25)),
}


@dataclass(frozen=True)
class Options:
    """The numbers of a session.

    Parameters
    ----------
    trials
        Configs to measure, the default among them; None for as many as the effort has.
    effort
        One of `EFFORTS`, by its name.
    timeout
        Seconds after which a config counts as failed.
    jobs
        Configs to build at once; None for one per CPU.
    seed
        Decides which configs are tried if there are more than ``trials``.
    force
        Tune workloads that have a record already, too.
    patient
        Go on with a workload when nothing untried is predicted to be faster.
    accept_unsure
        Record what has won although it is unsure.
    density, block
        The cond of the timing, as `te_select.timing.inputs.Mask` has it.
    fixed
        Knobs that are held, with their values. The default is measured as it is.

    Raises
    ------
    ArgumentError
        If a number is out of range.
    """

    trials: int | None = None
    effort: str = "full"
    timeout: float = TIMEOUT
    jobs: int | None = None
    seed: int = 0
    force: bool = False
    patient: bool = False
    accept_unsure: bool = False
    density: float = USUAL.density
    block: int = USUAL.block
    fixed: Mapping[str, int | bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.effort not in EFFORTS:
            raise ArgumentError(f"effort is {shown(self.effort)}; expected {' or '.join(EFFORTS)}")
        for name, (types, least, most, expected) in _RANGES.items():
            value = getattr(self, name)
            if type(value) not in types or not (value is None or least <= value <= most):
                raise ArgumentError(f"{name} is {shown(value)}; expected {expected}")

    @property
    def usual(self) -> Effort:
        """What holds where nothing else is said."""
        return EFFORTS[self.effort]

    @property
    def left_out(self) -> dict[str, str]:
        """What a record says of a session that leaves configs out, by its fields; empty texts else.

        A session that leaves out less does not take that record for its own.
        """
        held = (f"{knob}={value}" for knob, value in self.fixed.items())
        return {"effort": QUICK if self.effort == QUICK else "", "fixed": " ".join(held)}

    @property
    def most_trials(self) -> int:
        """How many configs are measured for a workload."""
        return self.usual.trials if self.trials is None else self.trials


# The types, the least and the largest value of each number, and what to expect in words.
_RANGES = {
    "trials": ((int, NoneType), 1, 10**9, "an int of 1, for the default alone, to 1000000000"),
    "timeout": ((int, float), 1e-9, LONGEST, "seconds above 0 and at most a day"),
    "jobs": ((int, NoneType), 1, LARGEST_JOBS, f"an int of 1 to {LARGEST_JOBS}"),
    "seed": ((int,), 0, LARGEST_SEED, f"0 to {LARGEST_SEED}"),
    "density": ((int, float), 0, 100, "0 to 100, in percent"),
    "block": ((int,), 1, math.inf, "an int of at least 1"),
}


def outlook(workloads: int, seconds: float, *, accept: bool = False) -> str:
    """Say how busy this machine is, what that does to outcomes, and how long a session may take."""
    from te_select.records import doubt  # noqa: PLC0415 - kept off --help
    from te_select.timing import cores  # noqa: PLC0415 - as above

    said = doubt.beside(cores.busy_cores(), accept=accept)
    if not workloads:
        return said
    most = f"{seconds / 60:.0f} minutes" if seconds > 120 else f"{seconds:.0f} seconds"  # noqa: PLR2004
    return f"{count_of(workloads, 'workload')} in at most {most} {AFTER}; {said}"


def open_measurer(
    runner: str = LOCAL, jobs: int | None = None, timeout: float = TIMEOUT
) -> Measurer:
    """Open a measurer.

    Parameters
    ----------
    runner
        ``"local"`` for this machine, or ``"rpc://HOST:PORT/KEY"`` for the servers that are
        registered under KEY with the RPC tracker at HOST:PORT.
    jobs
        Candidates to build at once; None for one per CPU that this process may use.
    timeout
        Seconds that a candidate may take to be built, and again to be checked and timed.

    Returns
    -------
    Measurer
        A context manager.

    Raises
    ------
    ToolchainError
        If nothing may be built.
    TuningError
        If the runner is neither, the tracker does not answer, or no server has the key.
    ArgumentError
        If ``jobs`` or ``timeout`` is not positive.
    """
    variables.check_building("what a session tries")
    place = parse_runner(runner)
    if place is None:
        return LocalMeasurer(jobs, timeout)
    from te_select.tuning.fleet.measurer import FleetMeasurer  # noqa: PLC0415 - imports tvm

    return FleetMeasurer(*place, jobs, timeout)


def measure_profile() -> str:
    """Measure the profile of this machine, if it is only reasoned; says what was done, or why not.

    What a kernel's default config is worth depends on it, so it comes before anything is tuned.
    """
    return str(kinds.profiler().measure_if_reasoned())


def parse_runner(runner: str) -> tuple[tuple[str, int], str] | None:
    """Read a runner's name.

    Returns
    -------
    tuple or None
        Host and port of a tracker, and the key; None for this machine.

    Raises
    ------
    TuningError
        If it is not the name of a runner.
    """
    if runner == LOCAL:
        return None
    match = _RPC.fullmatch(runner) if isinstance(runner, str) else None
    if not match or not 0 < int(match["port"]) <= _LARGEST_PORT:
        raise TuningError(
            f"runner {runner!r} is not known; expected local or rpc://HOST:PORT/KEY, KEY being "
            "what the servers are registered under, as in rpc://tracker.example:9190/zen5"
        )
    return (match["host"].strip("[]"), int(match["port"])), match["key"]
