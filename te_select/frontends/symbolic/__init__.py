"""What is known about tensors before a model runs: sizes as expressions, values of small ints."""
