"""What runs the toy's kernels; like all of runtime without tvm."""
