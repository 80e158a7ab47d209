"""The CUDA schedule, by the names of `te_select.schedules.seam`."""

from te_select.schedules.cuda.schedule import (
    NUMBERS,
    Config,
    alike,
    apply,
    config_from,
    config_of,
    default_config,
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
