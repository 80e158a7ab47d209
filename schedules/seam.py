"""The seam: the names that every schedule has, and the functions that it makes of one kernel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from te_select.operator.access import AccessPattern

Expression: TypeAlias = Any  # of TIR; TVM has no one class for them
Condition: TypeAlias = Callable[[Mapping[str, Expression], Mapping[str, Expression]], Expression]


@dataclass(frozen=True)
class Variant:
    """One function of a kernel.

    Parameters
    ----------
    name
        Its name, a part of its symbol. It is empty for the last one, the function of all other
        calls.
    config
        The config to apply, a ``Config`` of the schedule.
    applies
        Takes the sizes of the named dims and the flags of a call, both as TIR expressions by name.
        Returns whether the variant is for this call. The first variant that applies is taken.
    leaf
        What walks the innermost run of elements, in the words of docs/schedules.md.
    """

    name: str
    config: Any
    applies: Condition | None = None
    leaf: str = ""


class Schedule(Protocol):
    """The module of a kind's schedule, a part of ``te_select.schedules``.

    Attributes
    ----------
    Config
        A frozen dataclass of the knobs, ints and bools. ``config.checked(pattern, target)``
        returns the config, or raises ValueError if the schedule cannot follow it on the TVM target;
        without one, if it cannot on any.
    NUMBERS
        The knobs that may be random variables of MetaSchedule, at least one. The others change the
        structure. Each of their combinations is a design of its own.
    config_of
        Reads the config back from a scheduled function.
    config_from
        Makes a config from the knobs that a record holds. The config is not checked yet.
    """

    Config: type[Any]
    NUMBERS: tuple[str, ...]
    config_of: Callable[[Any], Any]
    config_from: Callable[[Mapping[str, int]], Any]

    def default_config(self, pattern: AccessPattern, target: Any) -> Any:
        """Choose a good config for a pattern and a TVM target, without measuring."""

    def variants(self, pattern: AccessPattern, config: Any) -> list[Variant]:
        """List the functions to make for a config; the last one is for all remaining calls."""

    def apply(self, sch: Any, pattern: AccessPattern, target: Any, config: Any) -> None:
        """Schedule the definition.

        Parameters
        ----------
        sch
            Schedule of the function that `te_select.operator.definition` made. It is changed in
            place. The knobs are written on its leaf (`te_select.schedules.leaf`).
        pattern
            The same workload's access pattern.
        target
            The TVM target.
        config
            The knobs; those of `NUMBERS` may be random variables of MetaSchedule.
        """

    def space(self, pattern: AccessPattern, target: Any) -> Mapping[str, Sequence[Any]]:
        """List the candidates of every knob; the knobs are fields of `Config`."""

    def dedup_key(
        self, pattern: AccessPattern, config: Any, cpus: int | None = None
    ) -> tuple[object, ...]:
        """Tell configs apart by what they do: a tuner tries only one config of each effect.

        Parameters
        ----------
        pattern
            The workload's access pattern, of int dims.
        config
            A config that fits it.
        cpus
            How many CPUs run the kernel; None if that is not known.

        Returns
        -------
        tuple
            Hashable. It is equal for configs that differ only in knobs without a meaning for the
            pattern.
        """

    def without_machine_knobs(self, pattern: AccessPattern, target: Any, config: Any) -> Any:
        """Replace the knobs of a config that hold only on the microarchitecture it was measured on.

        The result serves the pattern on the target. The replaced knobs have the default's values.
        """

    def may_share_record(
        self, pattern: AccessPattern, measured: AccessPattern, target: Any
    ) -> bool:
        """Whether the record of one pattern, of int dims, may serve another of a size near to it.

        Both have the same loops and width. The record may serve if the schedule treats the two in
        the same way.
        """
