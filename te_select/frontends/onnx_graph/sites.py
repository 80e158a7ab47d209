"""Finds every Where of an ONNX file, and which of them make shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto

from te_select.errors import ModelError
from te_select.frontends.onnx_graph.nodes import Node, bodies, is_default, text
from te_select.frontends.onnx_graph.scopes import opsets_of
from te_select.frontends.symbolic.status import Site
from te_select.frontends.words import words

FIRST_OPSET = 9
_WHERE_16 = 16
_INTEGER_ARITHMETIC = words(
    "Abs Add Cast Concat Div Equal Expand Flatten Gather Identity Max Min Mod Mul Neg Not "
    "ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterElements ScatterND Slice Split "
    "Squeeze Sub Tile Transpose Unsqueeze Where"
)
_READS_SHAPES: dict[str, tuple[int, ...]] = {
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "OneHot": (1,),
    "Pad": (1,),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (3,),
    "Slice": (1, 2),
    "Split": (1,),
    "Tile": (1,),
    "TopK": (1,),
}


@dataclass
class _Place:
    """A graph during the search."""

    path: str
    opset: int
    outer: _Place | None = None
    conds: set[str] = field(default_factory=set)
    makers: dict[str, str] = field(default_factory=dict)
    shape_names: set[str] = field(default_factory=set)

    def note(self, names: Iterable[str], maker: str) -> None:
        """Note what makes some tensors; only those that are a cond are kept."""
        self.makers.update({name: maker for name in names if name in self.conds})

    def maker(self, name: str) -> str:
        place: _Place | None = self
        while place is not None:
            if name in place.makers:
                return place.makers[name]
            place = place.outer
        return "graph input"


def sites(model: ModelProto) -> Iterator[Site]:
    """Find every Where of a file: in the graph, in its bodies, and in its functions."""
    opset = opsets_of(model.opset_import).get("", 0)
    main = _Place("graph", opset)
    yield from _of_graph(model.graph, main, "graph input")
    for function in model.functions:
        yield from of_function(function, function_path(function))


def of_function(function: FunctionProto, path: str) -> Iterator[Site]:
    """Find every Where of a function that stands at ``path``."""
    opset = opsets_of(function.opset_import).get("", 0)
    place = _Place(path, opset, conds=_conds(function.node))
    place.note(function.input, "function input")
    place.shape_names = _shape_names(function.node)
    yield from _of_nodes(function.node, place)


def function_path(function: FunctionProto) -> str:
    """The place of a local function."""
    overload = f":{function.overload}" if function.overload else ""
    return f"function:{function.domain}::{function.name}{overload}"


def _of_graph(graph: GraphProto, place: _Place, input_word: str) -> Iterator[Site]:
    place.conds = place.outer.conds if place.outer is not None else _conds(graph.node)
    place.note((info.name for info in graph.input), input_word)
    place.note((tensor.name for tensor in graph.initializer), "initializer")
    place.note((tensor.values.name for tensor in graph.sparse_initializer), "initializer")
    place.shape_names = _shape_names(graph.node)
    yield from _of_nodes(graph.node, place)


def _of_nodes(nodes: Sequence[NodeProto], place: _Place) -> Iterator[Site]:
    for node in nodes:
        if not place.conds.isdisjoint(node.output):
            place.note(node.output, Node(node, 0).op)
    for index, node in enumerate(nodes):
        if node.op_type == "Where" and is_default(node.domain):
            yield _site(node, index, place)
        for name, graph in bodies(node):
            path = f"{place.path}/{index}:{node.op_type}.{name}"
            inner = _Place(path, place.opset, place)
            yield from _of_graph(graph, inner, "body input")


def _site(node: NodeProto, index: int, place: _Place) -> Site:
    where = f"{place.path}#{index}"
    if len(node.input) != 3 or len(node.output) != 1:  # noqa: PLR2004 - condition, X and Y
        raise ModelError(
            f"Where at {where} has {len(node.input)} inputs and {len(node.output)} outputs; "
            "expected three and one"
        )
    if place.opset < FIRST_OPSET:
        raise ModelError(
            f"Where at {where} stands in opset {place.opset}, which has none; expected 9 or above"
        )
    version = _WHERE_16 if place.opset >= _WHERE_16 else FIRST_OPSET
    return Site(
        text(node.name),
        where,
        f"Where-{version}",
        place.maker(node.input[0]),
        makes_shapes=node.output[0] in place.shape_names,
    )


def _conds(nodes: Sequence[NodeProto]) -> set[str]:
    """Names of the tensors that are the cond of a Where, in bodies too."""
    names: set[str] = set()
    for node in nodes:
        if node.op_type == "Where":
            names.update(node.input[:1])
        for _, graph in bodies(node):
            names |= _conds(graph.node)
    return names - {""}


def _shape_names(nodes: Sequence[NodeProto]) -> set[str]:
    """Names of the tensors from which shapes are made through arithmetic of ints."""
    names: set[str] = set()
    for node in reversed(nodes):
        for _, graph in bodies(node):
            names |= _shape_names(graph.node)
        if not is_default(node.domain):
            continue
        taken: Iterable[int] = _READS_SHAPES.get(node.op_type, ())
        names |= {node.input[i] for i in taken if i < len(node.input)}
        if node.op_type in _INTEGER_ARITHMETIC and not names.isdisjoint(node.output):
            names |= set(node.input)
    return names - {""}
