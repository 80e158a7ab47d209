"""The seam: the names that every schedule has, and what each means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from te_select.operator.access import AccessPattern
from te_select.schedules.variant import Variant


class Schedule(Protocol):
    """The package of a kind of machine in ``te_select.schedules``.

    Attributes
    ----------
    Config
        A frozen dataclass of the knobs, ints and bools. ``config.checked(pattern)`` returns the
        config, or raises ValueError where the schedule cannot follow it.
    NUMBERS
        The knobs, one at least, that may be random variables of MetaSchedule. The others change
        the structure, and each of their combinations is a design of its own.
    config_of
        Reads the config back from a scheduled function.
    config_from
        Makes a config, which is not checked yet, of the knobs that a record holds.
    """

    Config: type[Any]
    NUMBERS: tuple[str, ...]
    config_of: Callable[[Any], Any]
    config_from: Callable[[Mapping[str, int]], Any]

    def default_config(self, pattern: AccessPattern, target: Any) -> Any:
        """Choose a good config for a pattern and a TVM target, without measuring."""

    def variants(self, pattern: AccessPattern, config: Any) -> list[Variant]:
        """List the functions to make of a config; the last one is for all calls that are left."""

    def apply(self, sch: Any, pattern: AccessPattern, target: Any, config: Any) -> None:
        """Schedule the definition.

        Parameters
        ----------
        sch
            Schedule of what `te_select.operator.definition` made. It is changed in place, and
            pattern and knobs are written on its leaf (`te_select.schedules.leaf`).
        pattern
            The same workload's access pattern.
        target
            The TVM target.
        config
            The knobs; those of `NUMBERS` may be random variables of MetaSchedule.
        """

    def space(self, pattern: AccessPattern, target: Any) -> Mapping[str, Sequence[Any]]:
        """List the candidates of every knob, which is a field of `Config`."""

    def effect(
        self, pattern: AccessPattern, config: Any, cpus: int | None = None
    ) -> tuple[object, ...]:
        """Tell configs apart by what they do: of those with one effect a tuner tries one only.

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
            Hashable, and equal for configs that differ in knobs without a meaning for the pattern.
        """

    def family(self, target: Any) -> object:
        """What a target has in common with those whose records may serve it.

        The value is hashable; it is None for a TVM target of another kind of machine.
        """

    def portable(self, pattern: AccessPattern, target: Any, config: Any) -> Any:
        """Leave out of a config what holds only on the microarchitecture that it was measured on.

        The result serves the pattern on the target; what is left out is the default's choice.
        """

    def alike(self, pattern: AccessPattern, measured: AccessPattern, target: Any) -> bool:
        """Whether the record of one pattern, of int dims, may serve another of a size near to it.

        Both have the same loops and width. The record may serve where the schedule treats the two
        in the same way.
        """
