"""Tuning: proposes configs, measures them, and records the best of each workload.

`runners` opens the measurer that a runner's name stands for: this machine, or a fleet. `search`
proposes configs, by `prediction` and by MetaSchedule's `evolution`. `measuring` builds, checks and
times them. `journal` keeps every trial the moment it is known. `trials` finds the winner among
them. `session` tunes a workload and writes its record; `tune` is the function of Python. `agenda`
goes from workload to workload. `display` shows the session on a terminal.
"""
