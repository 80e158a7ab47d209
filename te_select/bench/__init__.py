"""Measuring kernels: what is measured, and how."""
