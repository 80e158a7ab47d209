"""Schedules: for each kind of machine a file, `x86` and `cuda`, and beside it its knobs and spans.

A schedule's file has these names, and those that `te_select.machines` lists:

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
