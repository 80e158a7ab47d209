"""A workload with the schedule that was chosen for it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tvm import tirx

from te_select.operator.workload import Workload
from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, c_name
from te_select.schedules.seam import Variant


@dataclass(frozen=True)
class Scheduled:
    """A workload with the schedule chosen for it.

    Parameters
    ----------
    workload
        The workload.
    level
        The name of the target that it was scheduled for; of several levels, that of one.
    config
        The schedule's knobs: a ``Config`` of the machine's schedule.
    origin
        ``"default"``, or the record from which the config comes.
    why
        The reason for that, in one line; empty if the caller has chosen the config.
    functions
        The scheduled function of each variant, in the order of the variants.
    """

    workload: Workload
    level: str
    config: Any
    origin: str
    why: str
    functions: Mapping[Variant, tirx.PrimFunc]

    @property
    def func(self) -> tirx.PrimFunc:
        """The function for all calls that have no variant of their own."""
        return next(func for variant, func in self.functions.items() if variant.applies is None)


def records(
    chosen: Sequence[Scheduled],
    best: str,
    c_functions: Collection[Workload],
    names: Mapping[Workload, Sequence[str]],
) -> tuple[KernelRecord, ...]:
    """What a manifest says of each workload: the choice for every level, of which one is best."""
    choices: dict[Workload, dict[str, Choice]] = {}
    for one in chosen:
        choice = Choice(asdict(one.config), one.origin, one.why)
        choices.setdefault(one.workload, {})[one.level] = choice
    return tuple(
        KernelRecord(
            workload,
            by_level.pop(best),
            by_level,
            c_function=c_name(workload) if workload in c_functions else "",
            names=tuple(names.get(workload, ())),
        )
        for workload, by_level in choices.items()
    )


def symbol(i: int) -> str:
    """The name of the ``i``-th kernel inside a library."""
    return f"te_select_kernel_{i}"
