"""From a workload to a kernel: definition, schedule, lowering, shared library.

`compile` asks the cache first; a hit needs no TVM. `build` makes libraries and `export` writes
them. `scheduling` chooses a config and applies the schedule, `family` schedules the kernels of
`te_select.where`, and `sources` shows the code in each form.
"""
