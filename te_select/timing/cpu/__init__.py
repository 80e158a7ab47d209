"""Measures the profile of a machine, on CPUs."""
