"""Schedules: a folder for each kind of machine, and beside them the code that all leaves share.

A schedule never changes what is computed. It knows the access pattern of a workload. It knows no
front end, no record and no command line. `te_select.schedules.seam` lists the names of a schedule.

This folder is installed as ``te_select.schedules``.
"""
