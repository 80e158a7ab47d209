"""What is known of tensors before a model runs: sizes as expressions, values of small ints."""
