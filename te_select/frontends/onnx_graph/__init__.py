"""Walks the graphs of an ONNX file: what is known of every tensor, and where each Where stands."""
