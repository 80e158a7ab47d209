"""Timing of what is decided by the machine, on CPUs."""
