"""The toy's schedule: the loops as they are, the innermost marked; see `te_select.schedules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from te_select.operator.access import AccessPattern
from te_select.schedules import leaf
from te_select.schedules.seam import Variant

UNROLLS = (1, 4)


@dataclass(frozen=True)
class Config:
    """How often the C compiler is asked to unroll the innermost loop."""

    unroll: int

    def checked(self, _pattern: AccessPattern, _target: Any = None) -> Config:
        if self.unroll not in UNROLLS:
            raise ValueError(f"unroll is {self.unroll}; expected one of {UNROLLS}")
        return self


NUMBERS = ("unroll",)
config_from = partial(leaf.config_from, Config)
config_of = partial(leaf.config_of, Config)


def default_config(_pattern: AccessPattern, _target: Any) -> Config:
    return Config(unroll=4)


def variants(_pattern: AccessPattern, config: Config) -> list[Variant]:
    return [Variant("", config)]


def apply(sch: Any, pattern: AccessPattern, _target: Any, config: Config) -> None:
    if pattern.elements == 0:
        return
    for branch in ("then_b", "else_b"):
        sch.compute_inline(sch.get_sblock(branch))
    block = sch.get_sblock("out")
    if not sch.get_loops(block):
        sch.add_unit_loop(block)
    leaf.annotate(sch, sch.get_loops(block)[-1], "toy_loop", config)


def space(_pattern: AccessPattern, _target: Any) -> Mapping[str, Sequence[int]]:
    return {"unroll": UNROLLS}


def dedup_key(_pattern: AccessPattern, config: Config, _cpus: int | None = None) -> tuple[int]:
    return (config.unroll,)


def without_machine_knobs(_pattern: AccessPattern, _target: Any, config: Config) -> Config:
    return config


def may_share_record(_pattern: AccessPattern, _measured: AccessPattern, _target: Any) -> bool:
    return True
