"""The toy's schedule: the loops as they are, the innermost marked; see `te_select.schedules`."""

from dataclasses import dataclass
from functools import partial

from te_select.schedules import knobs, leaf
from te_select.schedules.knobs import knob
from te_select.schedules.seam import Variant

UNROLLS = (1, 4)


@dataclass(frozen=True)
class Config:
    """How often the C compiler is asked to unroll the innermost loop."""

    unroll: int = knob(UNROLLS)

    def checked(self, _pattern, _target=None):
        knobs.check(self)
        return self


NUMBERS = ("unroll",)
config_from = partial(leaf.config_from, Config)
config_of = partial(leaf.config_of, Config)


def default_config(_pattern, _target):
    return Config(unroll=4)


def variants(_pattern, config):
    return [Variant("", config)]


def apply(sch, pattern, _target, config):
    block = leaf.block_to_schedule(sch, pattern)
    if block is None:
        return
    if not sch.get_loops(block):
        sch.add_unit_loop(block)
    leaf.annotate(sch, sch.get_loops(block)[-1], "toy_loop", config)


def space(pattern, target):
    return knobs.space(default_config(pattern, target), pattern, target)


def dedup_key(_pattern, config, _cpus=None):
    return (config.unroll,)


def without_machine_knobs(_pattern, _target, config):
    return config


def may_share_record(_pattern, _measured, _target):
    return True
