"""The numbers of a session."""

import math
from dataclasses import dataclass

from te_select.errors import ArgumentError
from te_select.operator.broadcast import shown
from te_select.timing.operands import Mask
from te_select.tuning.measuring.process import LONGEST

TRIALS = 64
TIMEOUT = 30.0  # seconds; a build took 0.1 s, and a run that moves 8 GB took 20 s
LARGEST_SEED = (1 << 30) - 1
LARGEST_JOBS = 1024  # as many as fit into a machine of 512 GB


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
    patient: bool = False
    density: float = 50.0
    block: int = 1

    @property
    def mask(self) -> Mask:
        """The cond of the timing."""
        return Mask(self.density, self.block)

    def __post_init__(self) -> None:
        for name, (kinds, least, most, expected) in _RANGES.items():
            value = getattr(self, name)
            if (name, value) != ("jobs", None) and not (
                type(value) in kinds and least <= value <= most
            ):
                raise ArgumentError(f"{name} is {shown(value)}; expected {expected}")


# The types, the least and the largest value of each number, and what to expect in words.
_RANGES: dict[str, tuple[tuple[type, ...], float, float, str]] = {
    "trials": ((int,), 1, math.inf, "at least 1, the default"),
    "timeout": ((int, float), 1e-9, LONGEST, "seconds above 0 and at most a day"),
    "jobs": ((int,), 1, LARGEST_JOBS, f"an int of 1 to {LARGEST_JOBS}"),
    "seed": ((int,), 0, LARGEST_SEED, f"0 to {LARGEST_SEED}"),
    "density": ((int, float), 0, 100, "0 to 100, in percent"),
    "block": ((int,), 1, math.inf, "an int of at least 1"),
}
