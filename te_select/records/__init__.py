"""Records: tuned configs, kept in folders of logs, and found again by access pattern.

A folder of logs has one folder for each target, with MetaSchedule's own two files::

    <logs>/<target>/database_workload.json         a workload a line
    <logs>/<target>/database_tuning_record.json    the best config of each, a line
    <logs>/<target>/sessions.json                  for each, what was tried, where and by whom

`log` reads them without tvm, `store` writes them, `metaschedule` makes the lines, `lookup` finds
the record for a workload.
"""
