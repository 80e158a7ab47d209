"""Tuning: configs proposed, measured, and the best of each workload recorded.

`search` proposes configs, `measure` builds, checks and times them, `journal` keeps every trial the
moment it is known, `session` puts them together and decides, `display` shows it on a terminal.
"""
