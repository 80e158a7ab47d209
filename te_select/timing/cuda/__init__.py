"""Timing on CUDA devices: events, graphs, and the roof of a device."""
