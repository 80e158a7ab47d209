"""The CPU schedule, by the names of `te_select.schedules.seam`."""

from te_select.schedules.cpu.config import NUMBERS, Config
from te_select.schedules.cpu.defaults import default_config
from te_select.schedules.cpu.schedule import (
    apply,
    config_from,
    config_of,
    dedup_key,
    may_share_record,
    record_group,
    space,
    variants,
    without_machine_knobs,
)

__all__ = [
    "NUMBERS",
    "Config",
    "apply",
    "config_from",
    "config_of",
    "dedup_key",
    "default_config",
    "may_share_record",
    "record_group",
    "space",
    "variants",
    "without_machine_knobs",
]
