"""Checking: results of kernels, compared with NumPy bit for bit."""
