"""The bench: measures kernels beside other systems and the roof."""
