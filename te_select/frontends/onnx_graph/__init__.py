"""Walks the graphs of an ONNX file: finds every Where, and what is known about every tensor."""
