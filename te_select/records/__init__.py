"""Records: tuned configs, kept in folders of logs, and found again by access pattern.

A folder of logs has one folder for each target. The last two files are MetaSchedule's own, made of
the first::

    <logs>/<target>/sessions.json                  a record per line: what was found, and how
    <logs>/<target>/database_workload.json         one workload per line
    <logs>/<target>/database_tuning_record.json    the best config of each, one per line

`folders` says where they lie. `fields` checks lines, `log` reads them without tvm, `writer` writes
them, and MetaSchedule's files. `doubt` decides what is unsure, what may replace what, and what may
be used. `lookup` finds the record for a workload. `manage` works on whole folders.
"""
