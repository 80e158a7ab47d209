"""Select in dlight: a rule that schedules the function which TVM makes of a where.

    with target:
        mod = dlight.ApplyDefaultSchedule(te_select.dlight.Select())(mod)

Importing this package imports TVM. Only `te_select.relax` imports it.
"""

from te_select.dlight.rule import Select

__all__ = ["Select"]
