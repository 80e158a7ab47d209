"""The configs of a workload, told apart by what they lead to; and what knobs are worth together."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from te_select.backends import schedule_of
from te_select.backends.targets import ResolvedTarget
from te_select.compiler.scheduling import config_by_hand
from te_select.errors import ArgumentError
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.records import manage
from te_select.records.origin import ratio
from te_select.schedules import knobs

WARM = 3  # configs of records near by that are tried first
_NOISE = 0.98  # of the default's time; a knob that seems to gain less counts as no gain
# The seconds of a config that was proposed; None if it failed.
SecondsOf = Callable[[Any], float | None]


class Space:
    """The configs of a workload that differ in effect, the default first.

    Of those that have the same effect it holds the one that differs from the default in the fewest
    knobs.

    Parameters
    ----------
    workload
        A workload of int dims.
    target
        The target. If it is not a single model of machine, the knobs that the machine decides are
        left to the machine.
    cpus
        How many CPUs run the configs; None if that is not known.
    built
        The workload that is built, if its dims have names; ``workload`` has their largest sizes.
    fixed
        Knobs that are held: the first config is the default with these values.

    Raises
    ------
    ArgumentError
        If the schedule cannot follow the value of a fixed knob.
    """

    def __init__(
        self,
        workload: Workload,
        target: ResolvedTarget,
        cpus: int | None = None,
        built: Workload | None = None,
        fixed: Mapping[str, int | bool] = MappingProxyType({}),
    ) -> None:
        self.workload = workload
        self.target = target
        self.cpus = cpus
        self.has_names = built is not None
        self.pattern, self._named = access_pattern(workload), access_pattern(built or workload)
        self.schedule = schedule_of(target.kind)
        self.default = self.schedule.default_config(self._named, target.tvm)
        default = config_by_hand("fixed knobs", fixed, self._named, self.schedule, target)
        self.values = {
            name: tuple(dict.fromkeys((*values, getattr(default, name))))
            for name, values in self.schedule.space(self.pattern, target.tvm).items()
        } | {name: (value,) for name, value in fixed.items()}
        self._fixed = fixed.items()
        listed = (
            self.schedule.Config(**dict(zip(self.values, values, strict=True)))
            for values in itertools.product(*self.values.values())
        )
        self._by_effect: dict[tuple[object, ...], Any] = {}
        for config in (default, *sorted(listed, key=lambda each: len(changes(each, default)))):
            if self._may_be_tried(config):
                self._by_effect.setdefault(self.effect(config), config)
        self.configs = list(self._by_effect.values())

    def effect(self, config: Any) -> tuple[object, ...]:
        """What a config leads to, equal for configs that are one kernel."""
        return tuple(self.schedule.dedup_key(self.pattern, config, self.cpus))

    def known(self, logs: Iterable[Path]) -> list[Any]:
        """The configs of the records that lie nearest in size, of any target and any version."""
        ranked: list[tuple[float, int, Any]] = []
        for found in itertools.chain.from_iterable(map(manage.contents, logs)):
            for entry in found.entries:
                apart = ratio(self.pattern, entry.pattern)
                if apart is None or entry.unsure or entry.kind != self.target.kind:
                    continue
                try:
                    config = self.schedule.config_from(entry.config)
                except ValueError:  # its knobs are of another te_select
                    continue
                if self._may_be_tried(config):
                    ranked.append((apart, len(ranked), config))
        nearest = (self._by_effect.get(self.effect(c), c) for *_, c in sorted(ranked)[:WARM])
        return [
            config
            for config in dict.fromkeys(nearest)
            if config != self.configs[0] and self._fixed <= vars(config).items()
        ]

    def _may_be_tried(self, config: Any) -> bool:
        """Whether the schedule can follow it, and it leaves to machines what they decide.

        Many machines run code for a level: one machine's choice does not hold for the others.
        """
        try:
            config.checked(self._named, self.target.tvm)
        except ValueError:
            return False
        if self.target.model:
            return True
        shared = self.schedule.without_machine_knobs(self._named, self.target.tvm, config)
        return bool(shared == config)


def check_fixed(kind: str, fixed: Mapping[str, Any]) -> None:
    """Raise ArgumentError if these are no knobs of a kind of machine, or none of their values."""
    try:
        knobs.check_values(schedule_of(kind).Config, fixed)
    except ValueError as error:
        raise ArgumentError(f"fixed knobs {dict(fixed)} cannot be followed: {error}") from error


def changes(config: Any, default: Any) -> dict[str, Any]:
    """The knobs in which a config differs from the default, with its values."""
    return dict(vars(config).items() - vars(default).items())


def one_by_one(every: Sequence[Any]) -> list[Any]:
    """The configs that differ from the first in one knob: a value of each knob, then the next.

    The knobs that the machine decides come first: if time runs short, they are worth the most.
    """
    ordered = sorted(knobs.of(every[0]).items(), key=lambda pair: not pair[1].of_machine)
    by_knob: dict[str, list[Any]] = {name: [] for name, _ in ordered}
    for config in every[1:]:
        first, *others = changes(config, every[0])
        if not others:
            by_knob[first].append(config)
    turns = itertools.zip_longest(*by_knob.values())
    return [config for turn in turns for config in turn if config is not None]


def pairs_of_machine(every: Sequence[Any]) -> list[Any]:
    """The configs that differ from the first in two knobs which the machine decides by default.

    A second thread and plain stores gain together what neither gains alone, in caches.
    """
    decided = {name for name, knob in knobs.of(every[0]).items() if knob.of_machine}
    changed = ((config, changes(config, every[0]).keys()) for config in every)
    return [config for config, names in changed if len(names) == 2 and names <= decided]  # noqa: PLR2004


class Worth:
    """What the values of the knobs are worth, by the configs that differ from the default in one.

    Parameters
    ----------
    every
        The configs, the default first.
    seconds_of
        The seconds of those that were measured.
    """

    def __init__(self, every: Sequence[Any], seconds_of: SecondsOf) -> None:
        self._default = every[0]
        usual = seconds_of(self._default)
        self._factors: dict[frozenset[tuple[str, Any]], float] = {}
        for config in (*one_by_one(every), *pairs_of_machine(every)):
            change = frozenset(changes(config, self._default).items())
            factor = (seconds_of(config) or math.inf) / (usual or 1.0)
            self._factors[change] = 1.0 if _NOISE < factor < 1 else factor

    def predict(self, config: Any) -> float:
        """Its time over the default's, if the knobs did not depend on each other.

        A value that was not measured counts as the default's.
        """
        left = frozenset(changes(config, self._default).items())
        factor = 1.0
        for size in (2, 1):  # what two knobs are worth together says more than each alone
            for pair in map(frozenset, itertools.combinations(sorted(left), size)):
                if pair <= left and pair in self._factors:
                    factor *= self._factors[pair]
                    left -= pair
        return factor
