"""The names that an ONNX file defines, each once.

ONNX IR specification, "Names Within a Graph": graphs are in static single assignment form. The name
of a node's output differs from every name that is visible where the node stands. Inputs and
initializers of a body may hide names of the outer graphs, and an initializer may be the default
value of an input.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence

from onnx import GraphProto, ModelProto, NodeProto

from te_select.errors import ModelError
from te_select.frontends.onnx_graph.nodes import bodies
from te_select.frontends.onnx_graph.sites import function_path

_Names = ChainMap[str, str]  # what defines each name; the maps of outer graphs come last


def check(model: ModelProto) -> None:
    """Refuse a model that defines a name twice.

    Raises
    ------
    ModelError
        With the name, and the two that define it.
    """
    _check_graph(model.graph, "graph", ChainMap())
    for function in model.functions:
        path, own = function_path(function), _Names()
        for name in function.input:
            _define(own, name, f"an input of {path}")
        _check_nodes(function.node, path, own)


def _check_graph(graph: GraphProto, path: str, outer: _Names) -> None:
    inputs, initializers = _Names(), _Names()
    for info in graph.input:
        _define(inputs, info.name, f"an input of {path}")
    for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
        _define(initializers, tensor.name, f"an initializer of {path}")
    _check_nodes(graph.node, path, ChainMap({**initializers, **inputs}, *outer.maps))


def _check_nodes(nodes: Sequence[NodeProto], path: str, names: _Names) -> None:
    for index, node in enumerate(nodes):
        for attribute, graph in bodies(node):
            _check_graph(graph, f"{path}/{index}:{node.op_type}.{attribute}", names)
        for name in filter(None, node.output):
            _define(names, name, f"{path}#{index}")


def _define(names: _Names, name: str, what: str) -> None:
    if name in names:
        raise ModelError(
            f"{name!r} is defined twice, by {names[name]} and by {what}; expected one definition "
            "of each name"
        )
    names[name] = what
