"""The CPU schedule, by the names of `te_select.schedules.seam`."""

from te_select.schedules.cpu.config import NUMBERS, Config
from te_select.schedules.cpu.defaults import default_config
from te_select.schedules.cpu.schedule import (
    alike,
    apply,
    config_from,
    config_of,
    effect,
    family,
    portable,
    space,
    variants,
)

__all__ = [
    "NUMBERS",
    "Config",
    "alike",
    "apply",
    "config_from",
    "config_of",
    "default_config",
    "effect",
    "family",
    "portable",
    "space",
    "variants",
]
