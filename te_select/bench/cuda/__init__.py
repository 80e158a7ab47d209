"""``te-select bench`` for CUDA devices: the same suite, other peers, the device's copy as roof."""
