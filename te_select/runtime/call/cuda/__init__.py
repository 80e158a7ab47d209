"""The runtime half of CUDA kernels."""
