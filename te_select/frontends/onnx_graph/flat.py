"""A copy of a model for ONNX's inference: without functions, and with other names.

In the copy a name is one tensor, also in bodies: ONNX's inference hands values on by name alone. Of
what the file states, only the types of its inputs and initializers are there. Nodes of which ONNX
knows no operator, or infers it wrongly, are left out, so nothing is known of their outputs.
"""

import re
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
)

from te_select.errors import ModelError
from te_select.frontends.graphs import in_order, named, words
from te_select.frontends.onnx_graph.nodes import (
    bodies,
    is_default,
    opset_of,
    reads,
    schema_of,
    text,
    with_given,
)
from te_select.frontends.onnx_graph.sites import function_path

_IR_WITH_CONSTANTS = 4  # before it, every initializer was listed as an input too
_IR = 8  # of the copy
_MOST_BYTES = 1 << 12  # of a tensor whose elements may be sizes, axes or the like
MOST_STEPS = 30_000  # nodes, constants and 4 KiB of attributes of the copy; or twice the file's
_BYTES_A_STEP = 4096
_MOST_FILE_STEPS = 100_000
_DEEPEST = 30  # bodies and calls in each other; protobuf reads 100 messages in each other
_INVENTED = re.compile(r"unk__\d+")  # by ONNX's inference, which may have written the file
_WRONG = words("Attention STFT")  # the node tests of ONNX found no other
_RANDOM = words(
    "Bernoulli Dropout Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike"
)


@dataclass
class _Scope:
    """Where nodes stand: what they see, and the graph of the copy into which they go.

    Parameters
    ----------
    path
        The place of their graph.
    graph
        The graph of the copy.
    opset
        Version of ONNX's own operators.
    names
        The name of each tensor in the copy; the tensors of the graphs around come last.
    given
        Inside a function: the attributes of the call.
    conditional
        Whether the graph may never run.
    depth
        Number of bodies and calls around it.
    """

    path: str
    graph: GraphProto
    opset: int
    names: ChainMap[str, str] = field(default_factory=ChainMap)
    given: Mapping[str, AttributeProto] = field(default_factory=dict)
    conditional: bool = False
    depth: int = 0

    def look_up(self, name: str, reader: str) -> str:
        """The name in the copy; empty if the name is, which is how an input is left out.

        Raises
        ------
        ModelError
            If nothing makes it.
        """
        if name and name not in self.names:
            raise ModelError(f"{reader} reads {text(name)!r}, which nothing before it makes")
        return self.names[name] if name else ""


class Flat:
    """The copy, and where the Where nodes of the file are in it.

    Parameters
    ----------
    file
        The model.
    """

    def __init__(self, file: ModelProto) -> None:
        self.opset = opset_of(file.opset_import)
        imports = [helper.make_opsetid("", self.opset)]
        self.model = ModelProto(ir_version=_IR, opset_import=imports, graph=GraphProto())
        self.constant: set[str] = set()
        self.surely_run: set[str] = set()
        self._calls: dict[str, list[Sequence[str]]] = {}
        self._functions = {(f.domain, f.name, f.overload): f for f in file.functions}
        self._inside: list[str] = []
        self._count = 0
        self._gave_up = False
        parts = (file.graph.initializer, *(part.node for part in (file.graph, *file.functions)))
        in_file = sum(map(len, parts))
        self._steps = max(MOST_STEPS, min(2 * in_file, _MOST_FILE_STEPS))  # steps that are left
        scope = _Scope("graph", self.model.graph, self.opset)
        defaults = {tensor.name for tensor in file.graph.initializer}
        overridable = file.ir_version >= _IR_WITH_CONSTANTS
        inputs = [i for i in file.graph.input if overridable or i.name not in defaults]
        self.names = self._declare(inputs, scope)
        self._hold(file.graph, scope)
        self._nodes(file.graph.node, scope)

    def calls(self, place: str) -> list[Sequence[str]]:
        """The operands of a Where in the copy, for each call of it.

        If the copy would be too large, calls of bodies and functions may be missing. Then nothing
        is known about a Where inside of them.
        """
        unsure = self._gave_up and not place.startswith("graph#")
        return [] if unsure else self._calls.get(place, [])

    def _declare(self, inputs: Iterable[ValueInfoProto], scope: _Scope) -> dict[str, str]:
        """Take the inputs of the main graph; the names of their sizes, from which others follow."""
        wishes: dict[str, str] = {}
        for info in inputs:
            copy = scope.graph.input.add(name=self._define(info.name, scope), type=info.type)
            for axis, dim in enumerate(copy.type.tensor_type.shape.dim):
                if dim.HasField("dim_value") and dim.dim_value >= 0:  # some exporters write -1
                    continue
                said = " ".join(text(dim.dim_param).split())
                name = text(info.name)
                wish = "" if _INVENTED.fullmatch(said) else said
                dim.dim_param = wish or f"dim {axis} of input {name!r}"
                wishes[dim.dim_param] = wish or f"{name}_{axis}"
        return named(wishes)

    def _hold(self, graph: GraphProto, scope: _Scope) -> None:
        """Take the initializers of a graph."""
        held = [(tensor.name, tensor.dims, tensor) for tensor in graph.initializer]
        held += [(s.values.name, s.dims, s.values) for s in graph.sparse_initializer]
        for name, dims, tensor in held:
            if name not in scope.names.maps[0]:  # else it is the default of an input
                self._constant(tensor, dims, self._define(name, scope), scope.graph)

    def _constant(
        self, tensor: TensorProto, dims: Sequence[int], name: str, graph: GraphProto
    ) -> None:
        """Put a constant into the copy; if it is large, without its elements."""
        self._steps -= 1
        external = tensor.data_location == TensorProto.EXTERNAL
        if not external and list(dims) == tensor.dims and tensor.ByteSize() <= _MOST_BYTES:
            graph.initializer.add().CopyFrom(tensor)
            graph.initializer[-1].name = name
        graph.value_info.append(helper.make_tensor_value_info(name, tensor.data_type, dims))
        self.constant.add(name)

    def _define(self, name: str, scope: _Scope) -> str:
        """Give a tensor its name in the copy; an empty name is that of an output left out."""
        self._count += 1
        scope.names[name] = str(self._count) if name else ""
        return scope.names[name]

    def _nodes(self, nodes: Sequence[NodeProto], scope: _Scope) -> None:
        for index in _in_order(nodes, scope.path):
            node = with_given(nodes[index], scope.given)
            place = f"{scope.path}#{index}"
            inputs = [scope.look_up(name, place) for name in node.input]
            if node.op_type == "Where" and is_default(node.domain):
                self._calls.setdefault(place, []).append(inputs)
                if not scope.conditional:
                    self.surely_run.add(place)
            self._steps -= 1
            if self._steps < 0 or scope.depth > _DEEPEST:
                self._gave_up = True
            function = self._functions.get((node.domain, node.op_type, node.overload))
            if self._gave_up or function is None:
                self._copy(index, node, inputs, scope)
            else:
                self._call(function, node, inputs, scope)

    def _copy(self, index: int, node: NodeProto, inputs: Sequence[str], scope: _Scope) -> None:
        """Copy a node, if ONNX knows its operator, and walk its bodies."""
        schema = None if self._gave_up or scope.opset != self.opset else schema_of(node, self.opset)
        value = next((each.t for each in node.attribute if each.HasField("t")), None)
        if schema is not None and node.op_type == "Constant" and value is not None:
            for name in node.output:
                self._constant(value, value.dims, self._define(name, scope), scope.graph)
            return
        copy = NodeProto()
        constant = self.constant.issuperset(filter(None, inputs))
        if schema is not None and node.op_type not in _WRONG:
            copy = scope.graph.node.add(op_type=node.op_type, input=inputs)
            copy.attribute.extend(each for each in node.attribute if not each.HasField("g"))
            self._steps -= copy.ByteSize() // _BYTES_A_STEP
            if node.op_type in _RANDOM:
                constant = False
        for name, body in [] if self._gave_up else bodies(node):
            path = f"{scope.path}/{index}:{node.op_type}.{name}"
            held = copy.attribute.add(name=text(name), type=AttributeProto.GRAPH)
            self._body(body, path, scope, held.g)
            results = self.constant.issuperset(out.name for out in held.g.output)
            if not results or node.op_type != "If":
                constant = False
        copy.output.extend(self._define(name, scope) for name in node.output)
        if constant and copy.op_type:
            self.constant.update(copy.output)

    def _body(self, body: GraphProto, path: str, outer: _Scope, graph: GraphProto) -> None:
        scope = replace(outer, path=path, graph=graph, names=outer.names.new_child())
        scope.conditional = True
        scope.depth = outer.depth + 1
        for info in body.input:
            graph.input.add(name=self._define(info.name, scope))
        self._hold(body, scope)
        self._nodes(body.node, scope)
        for info in body.output:
            graph.output.add(name=scope.look_up(info.name, f"{path} as an output"))

    def _call(
        self, function: FunctionProto, node: NodeProto, inputs: Sequence[str], outer: _Scope
    ) -> None:
        """Copy the nodes of a local function for one call."""
        path = function_path(function)
        if path in self._inside:
            raise ModelError(f"{path} calls itself, through {' -> '.join(self._inside)}")
        self._inside.append(path)
        names = dict(zip_longest(function.input, inputs[: len(function.input)], fillvalue=""))
        scope = replace(outer, path=path, names=ChainMap(names))
        scope.opset = opset_of(function.opset_import)
        scope.given = {each.name: each for each in (*function.attribute_proto, *node.attribute)}
        scope.depth += 1
        self._nodes(function.node, scope)
        self._inside.pop()
        for name, inner in zip_longest(node.output, function.output):
            if name:
                made = scope.look_up(inner, path) if inner else self._define(name, outer)
                outer.names[name] = made


def _in_order(nodes: Sequence[NodeProto], path: str) -> Sequence[int]:
    """Indices of the nodes, each after those whose outputs it reads.

    Raises
    ------
    ModelError
        If the nodes wait for each other.
    """
    maker = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    if all(maker.get(name, -1) < i for i, node in enumerate(nodes) for name in node.input):
        return range(len(nodes))
    waits = {
        i: {maker[name] for name in reads(node) if name in maker} for i, node in enumerate(nodes)
    }
    return in_order(waits, path, "nodes")
