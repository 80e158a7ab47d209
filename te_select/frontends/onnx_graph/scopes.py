"""The tensors that the nodes of a graph can see, and the order in which its nodes run."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from onnx import AttributeProto, GraphProto, NodeProto, OperatorSetIdProto, TypeProto

from te_select.errors import ModelError
from te_select.frontends.onnx_graph.nodes import DTYPES, bodies, is_default, text
from te_select.frontends.order import in_order as sorted_nodes
from te_select.frontends.symbolic.expressions import UNKNOWN, Dim
from te_select.frontends.symbolic.tensors import Sizes, Tensor, is_open, newer
from te_select.frontends.symbolic.text import parse


@dataclass
class Scope:
    """The tensors of one graph while it is walked, and those of the graphs around it.

    Parameters
    ----------
    path
        The graph's place.
    opsets
        Version of each domain's operator set.
    tensors
        What is known about each tensor; the tensors of the graphs around it come last.
    given
        Inside a function: the attributes of the call.
    conditional
        Whether the graph may never run.
    """

    path: str
    opsets: Mapping[str, int]
    tensors: ChainMap[str, Tensor] = field(default_factory=ChainMap)
    given: Mapping[str, AttributeProto] | None = None
    conditional: bool = False

    def look_up(self, name: str, reader: str) -> Tensor | None:
        """Find a tensor; None if the name is empty, which is how an input is left out.

        Raises
        ------
        ModelError
            If nothing makes it.
        """
        if not name:
            return None
        if name in self.tensors:
            return self.tensors[name]
        raise ModelError(f"{reader} reads {name!r}, which nothing before it makes")

    def inside(self, body: str, *, conditional: bool) -> Scope:
        """The scope of a body of one of its nodes."""
        return replace(
            self,
            path=f"{self.path}/{body}",
            tensors=self.tensors.new_child(),
            conditional=self.conditional or conditional,
        )

    def opset(self, domain: str) -> int:
        """Version of a domain's operator set; 0 if it is not imported."""
        return self.opsets.get("" if is_default(domain) else domain, 0)


def opsets_of(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Version of each imported operator set by domain; ONNX's own domain is the empty name."""
    return {"" if is_default(each.domain) else each.domain: each.version for each in imports}


def declared(proto: TypeProto, met: str, sizes: Sizes) -> Tensor:
    """The tensor that a type describes: its names are sizes, and an open dim is a new size."""
    if not proto.HasField("tensor_type"):
        return Tensor()
    tensor = proto.tensor_type
    dtype = DTYPES.get(tensor.elem_type)
    if not tensor.HasField("shape"):
        return Tensor(dtype)
    dims: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        elif dim.dim_param:
            dims.append(parse(text(dim.dim_param)))
        else:  # some exporters write -1 for an unknown dim
            dims.append(sizes.fresh(f"dim {axis} of {met}"))
    return Tensor(dtype, tuple(dims))


def refined(tensor: Tensor, said: Tensor, met: str, mark: int, sizes: Sizes) -> Tensor:
    """Add what a graph states about a tensor inside it, as far as that is trusted.

    Element types and ints are trusted. Names are not: TorchScript names a size after the operator
    that made it, so one name may stand for two sizes. A correct name follows from the inputs.

    Parameters
    ----------
    tensor
        What is known about it.
    said
        What the graph states.
    met
        The tensor, for people.
    mark
        Only sizes named after this mark are replaced. Others are known to equal those of another
        tensor.
    sizes
        The file's sizes.
    """
    dims = tensor.shape
    if dims is None and said.shape is not None:
        dims = sizes.dims([UNKNOWN] * len(said.shape), met, said.shape)
    elif dims is not None and said.shape is not None and len(dims) == len(said.shape):
        dims = tuple(
            q if isinstance(q, int) and is_open(p) and newer(p, mark) else p
            for p, q in zip(dims, said.shape, strict=True)
        )
    return replace(tensor, dtype=tensor.dtype or said.dtype, shape=dims)


def in_order(nodes: Sequence[NodeProto], path: str) -> Sequence[int]:
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
    return sorted_nodes(waits, path, "nodes")


def reads(node: NodeProto) -> set[str]:
    """The names of the tensors that a node and its bodies read."""
    names = set(node.input)
    for _, graph in bodies(node):
        names |= free_names(graph)
    return names - {""}


def free_names(graph: GraphProto) -> set[str]:
    """The names that a body reads from the graphs around it."""
    own = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
    used = {info.name for info in graph.output}
    for node in graph.node:
        used |= reads(node)
        own |= set(node.output)
    return used - own
