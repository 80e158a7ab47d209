"""If, Loop and Scan: what is known about their outputs and about the inputs of their bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import Protocol

from onnx import GraphProto

from te_select.frontends.onnx_graph.nodes import Node
from te_select.frontends.onnx_graph.scopes import Scope
from te_select.frontends.symbolic.expressions import Dim
from te_select.frontends.symbolic.tensors import Sizes, Tensor, join, newer

_MOST_ROUNDS = 4  # walks of a loop; after these, the shapes of its state count as unknown


class Walker(Protocol):
    """Walks a body."""

    sizes: Sizes

    def run_body(self, graph: GraphProto, scope: Scope, inputs: Sequence[Tensor]) -> list[Tensor]:
        """Walk a body; its outputs."""


def outputs(
    walker: Walker, node: Node, index: int, inputs: Sequence[Tensor | None], scope: Scope
) -> list[Tensor]:
    """Walk the bodies of a node, and say what is known about its outputs.

    Parameters
    ----------
    walker
        Walks the bodies.
    node
        The node: If, Loop, Scan, or another that has bodies.
    index
        Its index in its graph.
    inputs
        What is known about its inputs.
    scope
        The scope in which it stands.
    """
    given = [Tensor() if tensor is None else tensor for tensor in inputs]
    scopes = {
        name: scope.inside(f"{index}:{node.proto.op_type}.{name}", conditional=True)
        for name, _ in node.bodies
    }
    graphs = dict(node.bodies)
    if node.op == "If" and {"then_branch", "else_branch"} <= graphs.keys() and given:
        return _if(walker, graphs, scopes, given[0], scope)
    if node.op == "Loop" and "body" in graphs and len(given) > 1:
        return _loop(walker, graphs["body"], scopes["body"], given)
    if node.op == "Scan" and "body" in graphs:
        return _scan(walker, graphs["body"], scopes["body"], node, given)
    for name, graph in node.bodies:
        walker.run_body(graph, scopes[name], ())
    return []


def _if(
    walker: Walker,
    graphs: dict[str, GraphProto],
    scopes: dict[str, Scope],
    cond: Tensor,
    outer: Scope,
) -> list[Tensor]:
    taken = cond.values.item() if cond.values is not None and cond.values.size == 1 else None
    if isinstance(taken, bool):
        name = "then_branch" if taken else "else_branch"
        scopes[name].conditional = outer.conditional
    then = walker.run_body(graphs["then_branch"], scopes["then_branch"], ())
    else_ = walker.run_body(graphs["else_branch"], scopes["else_branch"], ())
    if isinstance(taken, bool):
        return then if taken else else_

    def differing(axis: int, _dims: tuple[Dim, ...]) -> Dim:
        return walker.sizes.fresh(f"dim {axis} of an output of {scopes['then_branch'].path}")

    joined = [join(pair, differing) for pair in zip(then, else_, strict=False)]
    return [replace(tensor, constant=cond.constant and tensor.constant) for tensor in joined]


def _loop(walker: Walker, graph: GraphProto, scope: Scope, given: list[Tensor]) -> list[Tensor]:
    """``M, cond, state... -> state..., scan outputs...``."""
    counted = [Tensor("int64", ()), Tensor("bool", ())]
    trips = walker.sizes.fresh(f"the trips of {scope.path}")
    return _repeated(walker, graph, scope, given[2:], lambda state: [*counted, *state], 1, trips)


def _scan(
    walker: Walker, graph: GraphProto, scope: Scope, node: Node, given: list[Tensor]
) -> list[Tensor]:
    """``state..., scan inputs... -> state..., scan outputs...``, from opset 9 on."""
    count = len(given) - int(node.get("num_scan_inputs", 0))
    if not 0 <= count <= len(given):
        walker.run_body(graph, scope, ())
        return []
    axes = _padded(node.get("scan_input_axes", ()))
    scanned = [_row(tensor, axis) for tensor, axis in zip(given[count:], axes, strict=False)]
    rows = [row for row, _ in scanned]
    lengths = [length for _, length in scanned if length is not None]
    trips = lengths[0] if lengths else walker.sizes.fresh(f"the length of {scope.path}")
    out_axes = node.get("scan_output_axes", ())
    return _repeated(
        walker, graph, scope, given[:count], lambda state: [*state, *rows], 0, trips, out_axes
    )


def _repeated(
    walker: Walker,
    graph: GraphProto,
    scope: Scope,
    first: Sequence[Tensor],
    inputs: Callable[[list[Tensor]], list[Tensor]],
    skip: int,
    trips: Dim,
    axes: Sequence[int] = (),
) -> list[Tensor]:
    """Walk a body until the knowledge about its state holds for every trip; the node's outputs.

    Parameters
    ----------
    walker, graph, scope
        The body, its walker and its scope.
    first
        The state before the first trip.
    inputs
        The inputs of a trip, from its state.
    skip
        Number of outputs of the body before the state.
    trips, axes
        The number of trips, and the axes along which rows are stacked.
    """
    mark = walker.sizes.mark()
    state = [Tensor(tensor.dtype, tensor.shape) for tensor in first]
    wide: set[Dim] = set()

    def widened(axis: int, dims: tuple[Dim, ...]) -> Dim:
        """A dim that changes from trip to trip becomes a new size, which then stays."""
        if dims[0] not in wide:
            dims = (walker.sizes.fresh(f"dim {axis} of a state of {scope.path}"),)
            wide.add(dims[0])
        return dims[0]

    for trip in range(_MOST_ROUNDS + 1):
        scope.tensors.clear()
        found = walker.run_body(graph, scope, inputs(state))
        after = found[skip : skip + len(state)]
        after += [Tensor()] * (len(state) - len(after))
        merged = [join(pair, widened) for pair in zip(state, after, strict=True)]
        if merged == state or trip == _MOST_ROUNDS:
            break
        state = [Tensor() for _ in state] if trip == _MOST_ROUNDS - 1 else merged
    rows = [_leaving(walker, row, mark, scope) for row in found[skip + len(state) :]]
    return [_leaving(walker, tensor, mark, scope) for tensor in state] + [
        _stacked(row, trips, axis) for row, axis in zip(rows, _padded(axes), strict=False)
    ]


def _leaving(walker: Walker, tensor: Tensor, mark: int, scope: Scope) -> Tensor:
    """A tensor as it is seen after the loop, where sizes of a single trip have no meaning."""
    if tensor.shape is None:
        return Tensor(tensor.dtype)
    dims = tuple(
        walker.sizes.fresh(f"dim {axis} of an output of {scope.path}") if newer(dim, mark) else dim
        for axis, dim in enumerate(tensor.shape)
    )
    return Tensor(tensor.dtype, dims)


def _stacked(row: Tensor, count: Dim, axis: int) -> Tensor:
    """The rows of all trips as one tensor."""
    if row.shape is None:
        return row
    dims = list(row.shape)
    dims.insert(axis if axis >= 0 else len(dims) + 1 + axis, count)
    return Tensor(row.dtype, tuple(dims))


def _row(tensor: Tensor, axis: int) -> tuple[Tensor, Dim | None]:
    """The part of a scanned tensor that one trip sees, and the number of trips, if known."""
    if tensor.shape is None or not -len(tensor.shape) <= axis < len(tensor.shape):
        return Tensor(tensor.dtype), None
    dims = list(tensor.shape)
    length = dims.pop(axis)
    return Tensor(tensor.dtype, tuple(dims)), length


def _padded(axes: Sequence[int]) -> Iterator[int]:
    """Axes as an attribute has them, and then any number of zeros."""
    return chain(axes, repeat(0))
