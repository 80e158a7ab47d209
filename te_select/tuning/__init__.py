"""Tuning: configs proposed, measured, and the best of each workload recorded.

`runners` opens the measurer that a runner's name stands for: this machine, or a fleet. `search`
proposes configs. `measuring` builds, checks and times them. `journal` keeps every trial the moment
it is known. `trials` finds the winner among them. `session` goes from workload to workload and
writes records, and `display` shows it on a terminal.
"""
