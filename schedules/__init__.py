"""Schedules: for each kind of machine a folder, and beside them what their leaves have in common.

A schedule never changes what is computed. It knows the access pattern of a workload, and no front
end, no record and no command line. `te_select.schedules.seam` says which names a schedule has.

This folder is installed as ``te_select.schedules``.
"""
