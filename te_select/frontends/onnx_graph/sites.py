"""Finds every Where of an ONNX file, and refuses a file that defines a name twice.

ONNX IR specification, "Names Within a Graph": graphs are in static single assignment form. The name
of a node's output differs from every name that is visible where the node stands. Inputs and
initializers of a body may hide names of the outer graphs, and an initializer may be the default
value of an input.
"""

from collections import ChainMap
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from te_select.errors import ModelError
from te_select.frontends.graphs import words
from te_select.frontends.onnx_graph.nodes import bodies, is_default, operator_of, opset_of, text
from te_select.frontends.status import Site
from te_select.operator.systems import ONNX_WHERES, onnx_where

_INTEGER_ARITHMETIC = words(
    "Abs Add Cast Concat Div Equal Expand Flatten Gather Identity Max Min Mod Mul Neg Not "
    "ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterElements ScatterND Slice Split "
    "Squeeze Sub Tile Transpose Unsqueeze Where"
)
_READS_SHAPES = (  # for each input: the operators that take a shape, or a part of one, there
    words("ConstantOfShape Range"),
    words("CenterCropPad Col2Im Expand OneHot Pad Range Reshape Slice Split Tile TopK"),
    words("Col2Im Range Slice"),
    words("Resize"),
)


# What defines each name, for people, and as a producer; the maps of outer graphs come last.
_Names = ChainMap[str, tuple[str, str]]


@dataclass
class _Search:
    """A search through graphs of one opset: each Where, its cond, and the names that it sees."""

    opset: int
    found: list[tuple[Site, str, _Names]] = field(default_factory=list)

    def sites(self) -> list[Site]:
        """The nodes that were found; any later node may have made a cond, too."""
        nothing = ("", "graph input")
        return [
            replace(site, cond_producer=names.get(cond, nothing)[1])
            for site, cond, names in self.found
        ]

    def graph(self, graph: GraphProto, path: str, outer: _Names, input_word: str) -> None:
        """Search a graph and its bodies."""
        inputs, held = _Names(), _Names()
        for info in graph.input:
            _define(inputs, info.name, f"an input of {path}", input_word)
        sparse = (tensor.values for tensor in graph.sparse_initializer)
        for tensor in (*graph.initializer, *sparse):
            _define(held, tensor.name, f"an initializer of {path}", "initializer")
        both = {
            name: (what, held.get(name, ("", word))[1]) for name, (what, word) in inputs.items()
        }
        self.nodes(graph.node, path, ChainMap({**held, **both}, *outer.maps))

    def nodes(self, nodes: Sequence[NodeProto], path: str, names: _Names) -> None:
        """Search nodes, in the order of the file."""
        shape_names = _shape_names(nodes)
        for index, node in enumerate(nodes):
            if node.op_type == "Where" and is_default(node.domain):
                site = _site(node, f"{path}#{index}", self.opset, shape_names)
                self.found.append((site, node.input[0], names))
            for attribute, graph in bodies(node):
                inside = f"{path}/{index}:{node.op_type}.{attribute}"
                self.graph(graph, inside, names, "body input")
            for name in filter(None, node.output):
                _define(names, name, f"{path}#{index}", operator_of(node))


def sites(model: ModelProto) -> list[Site]:
    """Find every Where of a file: in the graph, in its bodies, and in its functions.

    Raises
    ------
    ModelError
        If a Where is malformed, or a name is defined twice.
    """
    search = _Search(opset_of(model.opset_import))
    search.graph(model.graph, "graph", ChainMap(), "graph input")
    return [*search.sites(), *chain.from_iterable(map(_of_function, model.functions))]


def _of_function(function: FunctionProto) -> list[Site]:
    """Find every Where of a local function."""
    path = function_path(function)
    search = _Search(opset_of(function.opset_import))
    names = _Names()
    for name in function.input:
        _define(names, name, f"an input of {path}", "function input")
    search.nodes(function.node, path, names)
    return search.sites()


def function_path(function: FunctionProto) -> str:
    """The place of a local function."""
    overload = f":{function.overload}" if function.overload else ""
    return f"function:{function.domain}::{function.name}{overload}"


def _define(names: _Names, name: str, what: str, producer: str) -> None:
    if name in names:
        raise ModelError(
            f"{name!r} is defined twice, by {names[name][0]} and by {what}; expected one "
            "definition of each name"
        )
    names[name] = what, producer


def _site(node: NodeProto, place: str, opset: int, shape_names: Container[str]) -> Site:
    if len(node.input) != 3 or len(node.output) != 1:  # noqa: PLR2004 - condition, X and Y
        raise ModelError(
            f"Where at {place} has {len(node.input)} inputs and {len(node.output)} outputs; "
            "expected three and one"
        )
    version = max((each for each in ONNX_WHERES if each <= opset), default=None)
    if version is None:
        raise ModelError(
            f"Where at {place} stands in opset {opset}, which has none; expected "
            f"{ONNX_WHERES[0]} or above"
        )
    of = onnx_where(version)
    makes_shapes = node.output[0] in shape_names
    op = f"Where-{version}"
    return Site(text(node.name), place, op, "", of, of.mode, makes_shapes=makes_shapes)


def _shape_names(nodes: Sequence[NodeProto]) -> set[str]:
    """Names of the tensors from which shapes are made through arithmetic of ints."""
    names: set[str] = set()
    for node in reversed(nodes):
        for _, graph in bodies(node):
            names |= _shape_names(graph.node)
        if not is_default(node.domain):
            continue
        pairs = zip(node.input, _READS_SHAPES, strict=False)
        names |= {name for name, readers in pairs if node.op_type in readers}
        if node.op_type in _INTEGER_ARITHMETIC and not names.isdisjoint(node.output):
            names |= set(node.input)
    return names - {""}
