"""The kernels of `te_select.where`: which there are, and where they come from."""
