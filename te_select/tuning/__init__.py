"""Tuning: proposes configs, measures them, and records the best of each workload.

`runners` opens the measurer that a runner's name stands for: this machine, or a fleet. `space` has
the configs of a workload, and `search` proposes some, with MetaSchedule's evolution. `measuring`
builds, checks and times them. `journal` keeps every trial the moment it is known. `trials` finds
the winner among them. `session` tunes a workload and writes its record; `tune` is the function of
Python. `agenda` goes from workload to workload. `show` says what became of them.
"""
