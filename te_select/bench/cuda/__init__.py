"""``te-select bench`` for CUDA devices: the same suite, other peers; the roof is a device copy."""
