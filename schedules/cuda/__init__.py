"""The CUDA schedule, by the names of `te_select.schedules.seam`."""

from te_select.schedules.cuda.schedule import (
    NUMBERS,
    Config,
    apply,
    config_from,
    config_of,
    dedup_key,
    default_config,
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
