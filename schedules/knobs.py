"""Knobs: each is declared once, as a field of a schedule's ``Config``.

The declaration has the values, the default, and what tuning tries of the values. The docstring of
the ``Config`` says what the knob means. Checks, the space of tuning, annotations, records and the
tables in ``docs/tuning.md`` follow from it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any

from te_select.operator.access import AccessPattern

Tried = Callable[[AccessPattern, Any, Any], Iterable[int]]
_FROM = {-1: "-1, by the machine, or not negative", 0: "not negative", 1: "positive"}


@dataclass(frozen=True)
class Knob:
    """What a schedule says of one knob.

    Parameters
    ----------
    values
        What it may be: a tuple of ints or of bools, or a range that ends at a power of two.
    tried
        What tuning tries for an access pattern, its default config and a TVM target; None for all
        values.
    number
        Whether it may be a random variable of MetaSchedule. Other knobs change the structure.
    of_machine
        Whether its value in a record of one model of machine serves no other model.
    """

    values: Sequence[int]
    tried: Tried | None
    number: bool
    of_machine: bool

    @property
    def expected(self) -> str:
        """The values in words."""
        if isinstance(self.values, range):
            return f"{_FROM[self.values.start]} and below 2**{self.values.stop.bit_length() - 1}"
        if type(self.values[0]) is bool:
            return "a boolean, true or false"
        *others, last = map(str, self.values)
        return f"{', '.join(others)} or {last}"


def knob(
    values: Sequence[int],
    tried: Tried | None = None,
    *,
    default: Any = MISSING,
    number: bool = False,
    of_machine: bool = False,
) -> Any:
    """Declare a knob; ``default`` is what records without the knob have, and configs by hand."""
    return field(default=default, metadata={"knob": Knob(values, tried, number, of_machine)})


def of(config: Any) -> dict[str, Knob]:
    """The knobs of a config or of a class of configs, by name."""
    return {each.name: each.metadata["knob"] for each in fields(config)}


def check(config: Any) -> None:
    """Raise ValueError if a knob has none of its values."""
    check_values(config, {name: getattr(config, name) for name in of(config)})


def check_values(config: Any, given: Mapping[str, Any]) -> None:
    """Raise ValueError if the given are no knobs of a class of configs, or none of their values."""
    declared = of(config)
    for name, value in given.items():
        if name not in declared:
            raise ValueError(f"{name!r} is no knob; expected one of {', '.join(declared)}")
        values = declared[name].values
        if type(value) is not type(values[0]) or value not in values:
            raise ValueError(f"{name} must be {declared[name].expected}")


def with_values(config: Any, given: Mapping[str, Any], pattern: AccessPattern, target: Any) -> Any:
    """The config with other values of some knobs, or ValueError if no schedule can follow it."""
    check_values(config, given)
    return replace(config, **given).checked(pattern, target)


def space(default: Any, pattern: AccessPattern, target: Any) -> Mapping[str, Sequence[int]]:
    """What tuning tries of every knob, by the default config of a pattern and a TVM target."""
    return {
        name: list(each.tried(pattern, default, target) if each.tried else each.values)
        for name, each in of(default).items()
    }


def effect(config: Any, leads_to: Mapping[str, object]) -> tuple[object, ...]:
    """Key that deduplicates configs: for each knob what it leads to, by default its value.

    So configs that differ in a new knob, of which a schedule says nothing else, are never taken for
    one. A schedule of any kind makes its ``dedup_key`` by this.
    """
    return tuple(leads_to.get(name, value) for name, value in vars(config).items())
