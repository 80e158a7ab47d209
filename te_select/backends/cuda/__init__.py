"""CUDA devices: nvcc or NVRTC makes machine code, which the library holds."""
