"""Small model files, and the reference corpus of model files with its index."""

import json
from os import environ
from pathlib import Path

from pytest import mark

from te_select import read_model


def tensor(name, dtype, shape):
    """An input or output of a graph."""
    from onnx import helper

    from te_select.frontends.onnx_graph.nodes import DTYPES

    number = next(number for number, known in DTYPES.items() if known == dtype)
    return helper.make_tensor_value_info(name, number, shape)


def ints(name, values):
    """An initializer of int64."""
    from onnx import TensorProto, helper

    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


def model(nodes, inputs, **parts):
    """An ONNX model; ``parts`` are those of the graph, of the model, and ``opsets``."""
    from onnx import helper

    opsets = parts.pop("opsets", {"": 17})
    of_model = {k: parts.pop(k) for k in ("functions", "ir_version") if k in parts}
    outputs = parts.pop("outputs", [])
    graph = helper.make_graph(nodes, "graph", inputs, outputs, **parts)
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    return helper.make_model(graph, opset_imports=imports, **of_model)


def read(proto, folder):
    """Write a model and read its nodes."""
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return read_model(path)


IS_CORPUS_HERE = "TE_SELECT_MODELS" in environ
OF_CORPUS = [
    mark.slow,
    mark.skipif(not IS_CORPUS_HERE, reason="TE_SELECT_MODELS is not set"),
]


def corpus():
    """The folder that ``TE_SELECT_MODELS`` names and its index, which is empty if it is not set."""
    folder = Path(environ.get("TE_SELECT_MODELS", ""))
    return folder, json.loads((folder / "index.json").read_text()) if IS_CORPUS_HERE else []
