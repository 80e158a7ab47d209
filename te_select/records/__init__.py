"""Records: tuned configs, kept in folders of logs, and found again by access pattern.

A folder of logs has one folder for each target. The first two files are MetaSchedule's own::

    <logs>/<target>/database_workload.json         one workload per line
    <logs>/<target>/database_tuning_record.json    the best config of each, one per line
    <logs>/<target>/sessions.json                  for each, what was tried, where and by whom

`folders` says where they lie. `log` reads them without tvm, `store` writes them. `doubt` decides
what is unsure, what may replace what, and what may be used. `metaschedule` makes records, and has
MetaSchedule replay them. `lookup` finds the record for a workload. `manage` works on whole folders.
"""
