"""Loads and calls compiled kernels; imports neither tvm nor a compiler."""
