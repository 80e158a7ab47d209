"""Checking: what kernels compute, compared with NumPy bit for bit."""
