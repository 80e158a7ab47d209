"""The toy's schedule: the loops as they are, the innermost marked; see `te_select.schedules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from te_select.operator.access import AccessPattern
from te_select.schedules import knobs, leaf
from te_select.schedules.knobs import knob
from te_select.schedules.seam import Variant

UNROLLS = (1, 4)


@dataclass(frozen=True)
class Config:
    """How often the C compiler is asked to unroll the innermost loop."""

    unroll: int = knob(UNROLLS)

    def checked(self, _pattern: AccessPattern, _target: Any = None) -> Config:
        knobs.check(self)
        return self


NUMBERS = ("unroll",)
config_from = partial(leaf.config_from, Config)
config_of = partial(leaf.config_of, Config)


def default_config(_pattern: AccessPattern, _target: Any) -> Config:
    return Config(unroll=4)


def variants(_pattern: AccessPattern, config: Config) -> list[Variant]:
    return [Variant("", config)]


def apply(sch: Any, pattern: AccessPattern, _target: Any, config: Config) -> None:
    block = leaf.block_to_schedule(sch, pattern)
    if block is None:
        return
    if not sch.get_loops(block):
        sch.add_unit_loop(block)
    leaf.annotate(sch, sch.get_loops(block)[-1], "toy_loop", config)


def space(pattern: AccessPattern, target: Any) -> Mapping[str, Sequence[int]]:
    return knobs.space(default_config(pattern, target), pattern, target)


def dedup_key(_pattern: AccessPattern, config: Config, _cpus: int | None = None) -> tuple[int]:
    return (config.unroll,)


def without_machine_knobs(_pattern: AccessPattern, _target: Any, config: Config) -> Config:
    return config


def may_share_record(_pattern: AccessPattern, _measured: AccessPattern, _target: Any) -> bool:
    return True
