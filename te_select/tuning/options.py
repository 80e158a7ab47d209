"""What a session is given: its numbers, and the runner that measures."""

import math
import re
from dataclasses import dataclass

from te_select import kinds
from te_select.errors import ArgumentError, TuningError
from te_select.operator.broadcast import shown
from te_select.tuning.measuring.measurer import LocalMeasurer, Measurer
from te_select.tuning.measuring.process import LONGEST

TRIALS = 64
TIMEOUT = 30.0  # seconds; a build took 0.1 s, and a run that moves 8 GB took 20 s
LARGEST_SEED = (1 << 30) - 1
LARGEST_JOBS = 1024  # as many as fit into a machine of 512 GB
LOCAL = "local"
_RPC = re.compile(r"rpc://(?P<host>\[[0-9a-fA-F:]+\]|[^/:\s]+):(?P<port>\d{1,5})/(?P<key>[^/:\s]+)")
_LARGEST_PORT = 65535


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
    patient
        Go on with a workload when nothing untried is predicted to be faster.
    density, block
        The cond of the timing, as `te_select.timing.inputs.Mask` has it.

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
    patient: bool = False
    density: float = 50.0
    block: int = 1

    def __post_init__(self) -> None:
        for name, (types, least, most, expected) in _RANGES.items():
            value = getattr(self, name)
            if (name, value) != ("jobs", None) and not (
                type(value) in types and least <= value <= most
            ):
                raise ArgumentError(f"{name} is {shown(value)}; expected {expected}")


# The types, the least and the largest value of each number, and what to expect in words.
_RANGES: dict[str, tuple[tuple[type, ...], float, float, str]] = {
    "trials": ((int,), 1, 10**9, "an int of 1, for the default alone, to 1000000000"),
    "timeout": ((int, float), 1e-9, LONGEST, "seconds above 0 and at most a day"),
    "jobs": ((int,), 1, LARGEST_JOBS, f"an int of 1 to {LARGEST_JOBS}"),
    "seed": ((int,), 0, LARGEST_SEED, f"0 to {LARGEST_SEED}"),
    "density": ((int, float), 0, 100, "0 to 100, in percent"),
    "block": ((int,), 1, math.inf, "an int of at least 1"),
}


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
    TuningError
        If the runner is neither, the tracker does not answer, or no server has the key.
    ArgumentError
        If ``jobs`` or ``timeout`` is not positive.
    """
    place = parse_runner(runner)
    if place is None:
        return LocalMeasurer(jobs, timeout)
    from te_select.tuning.fleet.measurer import FleetMeasurer  # noqa: PLC0415 - imports tvm

    return FleetMeasurer(*place, jobs, timeout)


def measure_profile() -> str:
    """Measure the profile of this machine, if it is only reasoned; says what was done, or why not.

    What a kernel's default config is worth depends on it, so it comes before anything is tuned.
    """
    (module,) = (kind.profile for kind in kinds.KINDS.values() if kind.profile)
    return str(kinds.load(module).measure_if_reasoned())


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
    if match is None or not 0 < int(match["port"]) <= _LARGEST_PORT:
        raise TuningError(
            f"runner {runner!r} is not known; expected local or rpc://HOST:PORT/KEY, KEY being "
            "what the servers are registered under, as in rpc://tracker.example:9190/zen5"
        )
    return (match["host"].strip("[]"), int(match["port"])), match["key"]
