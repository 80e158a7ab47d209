"""Measures candidates of a tuning session: isolated, compared with NumPy, one at a time.

Importing this imports neither tvm nor a compiler.
"""
