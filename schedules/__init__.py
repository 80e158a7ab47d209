"""Schedules: for each kind of machine a folder, and beside them what their leaves have in common.

A schedule never changes what is computed. It knows the access pattern of a workload, and no front
end, no record and no command line. The package of a kind has these names:

``Config``
    A frozen dataclass of its knobs, ints and bools; ``config.checked(pattern)`` returns it, or
    raises ValueError where the schedule cannot follow it.
``default_config(pattern, target)``
    The config to use without tuning.
``variants(pattern, config)``
    The functions to make, each a `te_select.schedules.variant.Variant`: a config, and the calls
    that it is for.
``apply(sch, pattern, target, config)``
    The schedule itself, which writes pattern and knobs on its leaf (`te_select.schedules.leaf`).
``config_of(scheduled)``, ``config_from(knobs)``
    The config, read back from a scheduled function, or from a record's knobs.

and for tuning:

``space(pattern, target)``
    For each knob its candidates, as data.
``NUMBERS``
    The knobs, one at least, that may be random variables of MetaSchedule. The others change the
    structure, and each of their combinations is a design of its own.
``effect(pattern, config, cpus)``
    A hashable value, equal for configs that do the same for the pattern on so many CPUs.
``family(target)``
    A hashable value, equal for targets whose records serve each other; None for a TVM target of
    another kind of machine.
``alike(pattern, measured, target)``
    Whether the record of one pattern may serve another of the same loops and a size near to it.

This folder is installed as ``te_select.schedules``.
"""
