"""Schedules: one file per kind of machine.

Each file has the same four names:

``Config``
    A frozen dataclass of the schedule's knobs.
``default_config(pattern, target)``
    The config to use without tuning.
``space(pattern, target)``
    For each knob the candidates that a tuner may try, as data.
``apply(sch, pattern, target, config)``
    The schedule itself.

This folder is installed as ``te_select.schedules``.
"""
