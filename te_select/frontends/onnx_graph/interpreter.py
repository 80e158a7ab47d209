"""Walks the nodes of an ONNX model and notes what is known about the operands of every Where."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from te_select.errors import ModelError
from te_select.frontends.onnx_graph import bodies
from te_select.frontends.onnx_graph.nodes import Node, is_default, tensor_of, text
from te_select.frontends.onnx_graph.schema import (
    default_attributes,
    function_body,
    outputs_of,
    schema_of,
)
from te_select.frontends.onnx_graph.scopes import Scope, declared, in_order, opsets_of, refined
from te_select.frontends.onnx_graph.shapes import shapes_of
from te_select.frontends.onnx_graph.sites import function_path, of_function
from te_select.frontends.onnx_graph.values import in_range, values_of
from te_select.frontends.symbolic.expressions import Scalar
from te_select.frontends.symbolic.names import Names
from te_select.frontends.symbolic.status import Operands, Site
from te_select.frontends.symbolic.tensors import Sizes, Tensor, Values
from te_select.frontends.words import words

T = TypeVar("T")

_IR_WITH_CONSTANTS = 4  # before it, every initializer was listed as an input too
_MAIN = "graph"
_NOTHING = (Tensor(), Tensor(), Tensor())
MOST_STEPS = 30_000  # nodes walked, counted at every walk; more if the file has more nodes
_MOST_FILE_STEPS = 100_000
_MOST_VIEWS = 32  # of one Where, from as many calls
_DEEPEST = 32  # calls of functions in each other
_RANDOM = words(
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
)


class Interpreter:
    """Walks a model once, and repeating bodies as often as needed.

    Parameters
    ----------
    model
        The model.
    expand
        Whether the bodies of operators that ONNX defines as functions are walked too.
    """

    def __init__(self, model: ModelProto, *, expand: bool = False) -> None:
        self.sizes = Sizes()
        self.names = Names(self.sizes)
        self._views: dict[str, dict[Operands, None]] = {}
        self._gave_up = False
        self.surely_run: set[str] = set()
        self.inside_operators: list[Site] = []
        self.main = Scope(_MAIN, opsets_of(model.opset_import))
        self._expand = expand
        self._model = model
        self._functions = {(f.domain, f.name, f.overload): f for f in model.functions}
        self._orders: dict[str, Sequence[int]] = {}
        self._calls: list[str] = []
        in_file = sum(len(part.node) for part in (model.graph, *model.functions))
        self._steps = max(MOST_STEPS, min(2 * in_file, _MOST_FILE_STEPS))  # steps that are left

    def run(self) -> None:
        """Walk the main graph, and from there everything that it calls."""
        graph = self._model.graph
        scope = self.main
        defaults = {tensor.name for tensor in graph.initializer}
        overridable = self._model.ir_version >= _IR_WITH_CONSTANTS
        inputs = [i for i in graph.input if overridable or i.name not in defaults]
        self._declare(inputs, scope)
        self._initializers(graph, scope)
        self._nodes(graph.node, scope, graph.value_info)

    def views(self, place: str) -> list[Operands]:
        """What is known about the operands of a Where, for each call of it.

        If the walk was given up, calls of bodies and functions may be missing. Then nothing is
        known about a Where inside of them.
        """
        if self._gave_up and not place.startswith(f"{_MAIN}#"):
            return [_NOTHING]
        return list(self._views.get(place, {_NOTHING: None}))

    def run_body(self, graph: GraphProto, scope: Scope, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Walk a body; its outputs.

        Parameters
        ----------
        graph
            The body.
        scope
            A scope of its own.
        inputs
            What is known about its inputs. The rest is taken from what the body says.
        """
        for i, info in enumerate(graph.input):
            given = inputs[i] if i < len(inputs) else Tensor()
            dtype = given.dtype or declared(info.type, info.name, self.sizes).dtype
            scope.tensors[info.name] = replace(given, dtype=dtype)
        self._initializers(graph, scope)
        self._nodes(graph.node, scope, graph.value_info)
        reader = f"{scope.path} as an output"
        return [scope.look_up(info.name, reader) or Tensor() for info in graph.output]

    def _declare(self, inputs: Sequence[ValueInfoProto], scope: Scope) -> None:
        """Take the inputs of the main graph: all other sizes follow from theirs."""
        given = []
        for info in inputs:
            tensor = declared(info.type, f"input {info.name!r}", self.sizes)
            scope.tensors[info.name] = tensor
            for axis, dim in enumerate(tensor.shape or ()):
                said = text(info.type.tensor_type.shape.dim[axis].dim_param)
                words = said or f"dim {axis} of input {info.name!r}"
                given.append((dim, words, said or f"{info.name}_{axis}"))
        self.names.give(given)

    @staticmethod
    def _initializers(graph: GraphProto, scope: Scope) -> None:
        own = scope.tensors.maps[0]  # a body may hide names of the graphs around it
        for proto in graph.initializer:
            own.setdefault(proto.name, tensor_of(proto))
        for sparse in graph.sparse_initializer:
            held = replace(tensor_of(sparse.values), shape=tuple(sparse.dims), values=None)
            own.setdefault(sparse.values.name, held)

    def _nodes(
        self, nodes: Sequence[NodeProto], scope: Scope, infos: Iterable[ValueInfoProto]
    ) -> None:
        """Walk the nodes of a graph, about whose tensors the file says something, too."""
        stated = {info.name: info.type for info in infos}
        if scope.path not in self._orders:
            self._orders[scope.path] = in_order(nodes, scope.path)
        for index in self._orders[scope.path]:
            proto, mark = nodes[index], self.sizes.mark()
            found = self._outputs(index, proto, scope)
            for i, name in enumerate(proto.output):
                if name:
                    tensor = found[i] if i < len(found) else Tensor()
                    if name in stated:
                        said = declared(stated[name], repr(name), self.sizes)
                        tensor = refined(tensor, said, repr(name), mark, self.sizes)
                    scope.tensors[name] = tensor

    def _outputs(self, index: int, proto: NodeProto, scope: Scope) -> list[Tensor]:
        """What is known about the outputs of a node; nothing about missing ones."""
        place = f"{scope.path}#{index}"
        inputs = [scope.look_up(name, place) for name in proto.input]
        if proto.op_type == "Where" and is_default(proto.domain):
            self._note(place, inputs, conditional=scope.conditional)
        self._steps -= 1
        if self._steps < 0:
            self._gave_up = True
            return []
        function = self._functions.get((proto.domain, proto.op_type, proto.overload))
        if function is not None:
            return self._call(function, proto, inputs, scope)
        node = Node(proto, scope.opset(proto.domain), scope.given)
        if node.bodies:
            return bodies.outputs(self, node, index, inputs, scope)
        if self._expand:
            self._walk_operator(node, index, inputs, scope)
        return self._infer(node, inputs)

    def _note(self, place: str, inputs: Sequence[Tensor | None], *, conditional: bool) -> None:
        """Note the operands of a Where in one call."""
        if not conditional:
            self.surely_run.add(place)
        cond, then, else_ = (
            Tensor() if tensor is None else replace(tensor, values=None) for tensor in inputs
        )
        seen = self._views.setdefault(place, {})
        seen[cond, then, else_] = None
        if len(seen) > _MOST_VIEWS:
            self._views[place] = {_NOTHING: None}

    def _call(
        self,
        function: FunctionProto,
        proto: NodeProto,
        inputs: Sequence[Tensor | None],
        outer: Scope,
    ) -> list[Tensor]:
        """Walk a local function with the inputs and attributes of one call."""
        path = function_path(function)
        if path in self._calls:
            raise ModelError(f"{path} calls itself, through {' -> '.join(self._calls)}")
        if len(self._calls) >= _DEEPEST:
            self._gave_up = True
            return []
        given = [*function.attribute_proto, *Node(proto, 0, outer.given).proto.attribute]
        scope = self._walk_function(function, path, given, inputs, outer)
        return [scope.look_up(name, path) or Tensor() for name in function.output]

    def _walk_operator(
        self, node: Node, index: int, inputs: Sequence[Tensor | None], outer: Scope
    ) -> None:
        """Walk the body by which ONNX defines an operator."""
        schema = schema_of(node)
        if schema is None or len(self._calls) >= _DEEPEST:
            return
        function = function_body(node, schema, inputs)
        if function is None:
            return
        path = f"{outer.path}/{index}:{node.proto.op_type}"
        if path not in self._orders:
            self.inside_operators += of_function(function, path)
        given = [*default_attributes(schema), *node.proto.attribute]
        self._walk_function(function, path, given, inputs, outer)

    def _walk_function(
        self,
        function: FunctionProto,
        path: str,
        given: Sequence[AttributeProto],
        inputs: Sequence[Tensor | None],
        outer: Scope,
    ) -> Scope:
        """Walk the nodes of a function; their scope."""
        scope = Scope(
            path,
            opsets_of(function.opset_import),
            given={attribute.name: attribute for attribute in given},
            conditional=outer.conditional,
        )
        for i, name in enumerate(function.input):
            tensor = inputs[i] if i < len(inputs) else None
            scope.tensors[name] = Tensor() if tensor is None else tensor
        self._calls.append(path)
        self._nodes(function.node, scope, function.value_info)
        self._calls.pop()
        return scope

    def _infer(self, node: Node, inputs: Sequence[Tensor | None]) -> list[Tensor]:
        """What is known about the outputs of one of ONNX's own operators."""
        schema = schema_of(node)
        if schema is None or not is_default(node.proto.domain):
            return []
        if node.op == "Constant" and "value" in node.attributes:
            with contextlib.suppress(Exception):  # it may be no tensor
                held, name = tensor_of(node.get("value")), node.proto.output[0]
                return [self._tensor(name, held.dtype, held.shape, held.values, constant=True)]
        known = outputs_of(node, schema, inputs)
        shapes = shapes_of(node, inputs, [dims for _, dims in known])
        values: Sequence[Values | None] = []
        with contextlib.suppress(Exception):  # a malformed node, or too little is known
            values = values_of(node, inputs, shapes)
        constant = self._is_constant(node, inputs)
        return [
            self._tensor(name, dtype, _at(shapes, i), _at(values, i), constant=constant)
            for i, (name, (dtype, _)) in enumerate(zip(node.proto.output, known, strict=True))
        ]

    def _tensor(
        self,
        name: str,
        dtype: str | None,
        dims: Sequence[Scalar] | None,
        values: Values | None,
        *,
        constant: bool,
    ) -> Tensor:
        values = None if values is None else in_range(values, dtype)
        dims = dims if values is None else values.shape
        if dims is None:
            return Tensor(dtype, constant=constant)
        return Tensor(dtype, self.sizes.dims(dims, repr(name)), values, constant)

    @staticmethod
    def _is_constant(node: Node, inputs: Sequence[Tensor | None]) -> bool:
        """Whether the outputs are the same at every call."""
        if node.op in _RANDOM:
            return False
        if node.op in ("Shape", "Size") and inputs and inputs[0] is not None:
            shape = inputs[0].shape
            if shape is not None and all(isinstance(dim, int) for dim in shape):
                return True
        return all(tensor is None or tensor.constant for tensor in inputs)


def _at(items: Sequence[T | None], index: int) -> T | None:
    return items[index] if index < len(items) else None
