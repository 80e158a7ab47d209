"""The runtime half of CPU kernels."""
