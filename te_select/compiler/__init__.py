"""From a workload to a kernel: definition, schedule, lowering, shared library.

`compiling` has `compile` and `export`. `scheduling` chooses a config and applies the schedule,
`building` makes the library, `sources` shows the code in each form, and `family` builds the
kernels of `te_select.where`.
"""

from te_select.compiler.building import build_scheduled, check_runs_here, versions
from te_select.compiler.compiling import compile, export
from te_select.compiler.scheduling import TuningLogs, schedule
from te_select.compiler.sources import source

__all__ = [
    "TuningLogs",
    "build_scheduled",
    "check_runs_here",
    "compile",
    "export",
    "schedule",
    "source",
    "versions",
]
