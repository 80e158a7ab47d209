"""Reads oneDNN Graph JSON files, as the library dumps them and benchdnn takes them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from te_select.errors import ModelError, caught
from te_select.frontends.graphs import in_order, named
from te_select.frontends.status import Site, model_node
from te_select.frontends.tensors import Dim, Tensor, agree, format_dims
from te_select.operator.broadcast import shown
from te_select.operator.node import ModelNode
from te_select.operator.systems import OPS, TYPE_NAMES
from te_select.runtime.artifact.fields import read

_NAMES = TYPE_NAMES["onednn"]
_OPEN = -(2**63)  # DNNL_GRAPH_UNKNOWN_DIM


@dataclass(frozen=True)
class _Stated:
    """What an operation says about a tensor."""

    id: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Operation:
    kind: str
    name: Any = ""
    attrs: Mapping[str, Any] = field(default_factory=dict)
    inputs: tuple[_Stated, ...] = ()
    outputs: tuple[_Stated, ...] = ()


def read_onednn(file: BinaryIO) -> list[ModelNode]:
    """Read every Select of a oneDNN Graph JSON file.

    Parameters
    ----------
    file
        The file, opened: what ``ONEDNN_GRAPH_DUMP=graph`` writes, or an input of benchdnn's graph
        driver.

    Returns
    -------
    list of ModelNode
        In the order of the file.

    Raises
    ------
    ModelError
        If the file is not a oneDNN graph, or contradicts itself.

    Notes
    -----
    oneDNN Graph specification, operation Select. A shape of one unknown dim is taken as an unknown
    rank, because that is how the library writes an unknown rank.
    """
    ops = _operations(file)
    graph = _Graph(ops, _makers(ops))
    return [graph.node(index) for index, op in enumerate(ops) if op.kind == "Select"]


class _Graph:
    """The tensors of a file by id, as the file states them in all places together."""

    def __init__(self, ops: Sequence[_Operation], makers: Mapping[int, int]) -> None:
        self._ops = ops
        self._makers = makers
        self._tensors: dict[int, Tensor] = {}
        stated = [(t, i) for i, op in enumerate(ops) for t in (*op.inputs, *op.outputs)]
        self._names = named(
            {
                (tensor.id, axis): f"t{tensor.id}_{axis}"
                for tensor, _ in stated
                for axis, dim in enumerate(tensor.shape)
                if dim == _OPEN and tensor.shape != (_OPEN,) and tensor.id not in makers
            }
        )
        self._texts = {
            name: f"dim {axis} of tensor {tensor_id}"
            for (tensor_id, axis), name in self._names.items()
        }
        for tensor, index in stated:
            self._state(tensor, index)

    def node(self, index: int) -> ModelNode:
        """Make the node of a Select."""
        op = self._ops[index]
        place = f"graph#{index}"
        if len(op.inputs) != 3 or len(op.outputs) != 1:  # noqa: PLR2004 - cond, then, else
            raise ModelError(
                f"Select {place} has {len(op.inputs)} inputs and {len(op.outputs)} outputs; "
                "expected three and one"
            )
        cond = op.inputs[0].id
        mode = op.attrs.get("auto_broadcast", "numpy")
        if isinstance(mode, Mapping):
            mode = mode.get("value")
        maker = self._ops[self._makers[cond]].kind if cond in self._makers else "graph input"
        site = Site(str(op.name), place, "Select", maker, OPS["onednn"], mode)
        node = model_node(site, [self._tensors[t.id] for t in op.inputs], self._texts)
        stated = self._tensors[op.outputs[0].id].shape
        if node.workload is not None and stated is not None:
            out = node.workload.out_shape
            if not agree(out, stated):
                raise ModelError(
                    f"the output of Select {place} is {format_dims(stated)}, and its inputs make "
                    f"{format_dims(out)}"
                )
        return node

    def _state(self, stated: _Stated, index: int) -> None:
        """Take what the file says about a tensor in one place."""
        tensor_id, shape = stated.id, stated.shape
        known = self._tensors.get(tensor_id, Tensor())
        dtype = None if stated.dtype == "undef" else _NAMES.get(stated.dtype, stated.dtype)
        if known.dtype and dtype and known.dtype != dtype:
            raise ModelError(_contradiction(tensor_id, index, known.dtype, dtype))
        dims = known.shape
        if shape != (_OPEN,):
            said: tuple[Dim, ...] = tuple(
                dim if dim >= 0 else self._names.get((tensor_id, axis))
                for axis, dim in enumerate(shape)
            )
            if dims is not None and not agree(dims, said):
                raise ModelError(
                    _contradiction(tensor_id, index, format_dims(dims), format_dims(said))
                )
            pairs = zip(dims or said, said, strict=True)
            dims = tuple(p if isinstance(p, int) else q for p, q in pairs)
        self._tensors[tensor_id] = Tensor(known.dtype or dtype, dims)


def _contradiction(tensor_id: int, index: int, known: str, said: str) -> str:
    return f"tensor {tensor_id} is {known}, and {said} in graph#{index}"


def _operations(file: BinaryIO) -> list[_Operation]:
    try:
        document = json.loads(file.read())
    except caught(ValueError, RecursionError) as error:
        raise ModelError(f"the file is no oneDNN graph: {error}") from error
    graph = document.get("graph") if isinstance(document, Mapping) else None
    if not isinstance(graph, list):
        raise ModelError('the file is no oneDNN graph: it has no list "graph"')
    ops: list[_Operation] = []
    for index, said in enumerate(graph):
        try:
            op = read(_Operation, said, "it")
        except caught(TypeError, RecursionError) as error:
            raise ModelError(f"graph#{index} is no operation: {error}") from error
        ops.append(op)
        for tensor in (*op.inputs, *op.outputs):
            if not all(type(dim) is int and (dim >= 0 or dim == _OPEN) for dim in tensor.shape):
                raise ModelError(
                    f"graph#{index} has the tensor {shown(vars(tensor))}; expected sizes"
                )
    return ops


def _makers(ops: Sequence[_Operation]) -> dict[int, int]:
    """The operation that makes each tensor."""
    makers: dict[int, int] = {}
    for index, op in enumerate(ops):
        for tensor in op.outputs:
            if tensor.id in makers:
                raise ModelError(
                    f"tensor {tensor.id} is made by graph#{makers[tensor.id]} and by "
                    f"graph#{index}; expected one operation"
                )
            makers[tensor.id] = index
    waits = {
        index: {makers[tensor.id] for tensor in op.inputs if tensor.id in makers}
        for index, op in enumerate(ops)
    }
    in_order(waits, "graph", "operations")
    return makers
