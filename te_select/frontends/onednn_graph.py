"""Reads oneDNN Graph JSON files, as the library dumps them and benchdnn takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO

from te_select.errors import ModelError
from te_select.frontends.order import in_order
from te_select.frontends.symbolic.expressions import Dim
from te_select.frontends.symbolic.names import Names
from te_select.frontends.symbolic.rules import shape_of
from te_select.frontends.symbolic.status import Judge, Rule, Site
from te_select.frontends.symbolic.tensors import Sizes, Tensor, agree
from te_select.operator.broadcast import format_shape, shown
from te_select.operator.node import ModelNode
from te_select.operator.systems import OPS, TYPE_NAMES

_NAMES = TYPE_NAMES["onednn"]
_OPEN = -(2**63)  # DNNL_GRAPH_UNKNOWN_DIM


def read_onednn(file: BinaryIO, *, expand: bool = False) -> list[ModelNode]:
    """Read every Select of a oneDNN Graph JSON file.

    Parameters
    ----------
    file
        The file, opened: what ``ONEDNN_GRAPH_DUMP=graph`` writes, or an input of benchdnn's graph
        driver.

    expand
        Has no meaning for this format.

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
    graph = _Graph(ops)
    for index in _order(ops):
        graph.infer(index)
    return [graph.node(index) for index, op in enumerate(ops) if op.get("kind") == "Select"]


class _Graph:
    """The tensors of a file by id, as far as they are known."""

    def __init__(self, ops: Sequence[Mapping[str, Any]]) -> None:
        self._ops = ops
        self._sizes = Sizes()
        names = Names(self._sizes)
        self._judge = Judge(names)
        self._makers = {t["id"]: str(op["kind"]) for op in ops for t in op["outputs"]}
        self._tensors: dict[int, Tensor] = {}
        self._texts: list[tuple[Dim, str, str]] = []
        for index, op in enumerate(ops):
            for tensor in (*op["inputs"], *op["outputs"]):
                self._state(tensor, index)
        names.give(self._texts)
        self._stated = dict(self._tensors)

    def infer(self, index: int) -> None:
        """Add what follows from an operation's inputs to what the file says about its output."""
        op = self._ops[index]
        inputs = [self._tensors[tensor["id"]].shape for tensor in op["inputs"]]
        shape = shape_of(op["kind"], partial(_attribute, op), inputs)
        if shape is None or not op["outputs"]:
            return
        tensor_id = op["outputs"][0]["id"]
        known = self._tensors[tensor_id]
        if known.shape is None or len(known.shape) == len(shape):
            dims = self._sizes.dims(shape, f"tensor {tensor_id}", known.shape)
            self._tensors[tensor_id] = Tensor(known.dtype, dims)

    def node(self, index: int) -> ModelNode:
        """Make the node of a Select."""
        op, place = self._ops[index], f"graph#{index}"
        if len(op["inputs"]) != 3 or len(op["outputs"]) != 1:  # noqa: PLR2004 - cond, then, else
            raise ModelError(
                f"Select {place} has {len(op['inputs'])} inputs and {len(op['outputs'])} outputs; "
                "expected three and one"
            )
        cond, then, else_ = (tensor["id"] for tensor in op["inputs"])
        mode = _attribute(op, "auto_broadcast") if "auto_broadcast" in op["attrs"] else "numpy"
        if mode not in ("none", "numpy"):
            raise ModelError(
                f"Select {place} has auto_broadcast {shown(mode)}; expected none or numpy"
            )
        site = Site(str(op.get("name", "")), place, "Select", self._makers.get(cond, "graph input"))
        operands = (self._tensors[cond], self._tensors[then], self._tensors[else_])
        node = self._judge.node(site, operands, Rule(OPS["onednn"], mode))
        stated = self._stated[op["outputs"][0]["id"]].shape
        if node.workload is not None and stated is not None:
            out = node.workload.out_shape
            if not agree(out, stated):
                raise ModelError(
                    f"the output of Select {place} is {list(stated)}, and its inputs make "
                    f"{format_shape(out)}"
                )
        return node

    def _state(self, stated: Mapping[str, Any], index: int) -> None:
        """Take what the file says about a tensor in one place."""
        tensor_id, shape = stated["id"], stated["shape"]
        known = self._tensors.get(tensor_id, Tensor())
        dtype = None if stated["dtype"] == "undef" else _NAMES.get(stated["dtype"], stated["dtype"])
        if known.dtype and dtype and known.dtype != dtype:
            self._contradiction(tensor_id, index, known.dtype, dtype)
        dims = known.shape
        if shape != [_OPEN]:
            before = dims if dims is not None and len(dims) == len(shape) else None
            dims = tuple(
                dim if dim >= 0 else before[axis] if before else self._open(tensor_id, axis)
                for axis, dim in enumerate(shape)
            )
            if known.shape is not None and not agree(known.shape, dims):
                self._contradiction(tensor_id, index, known.shape, dims)
        self._tensors[tensor_id] = Tensor(known.dtype or dtype, dims)

    def _open(self, tensor_id: int, axis: int) -> Dim:
        """A size about which the file says nothing; it has a name if it is one of an input."""
        text = f"dim {axis} of tensor {tensor_id}"
        dim = self._sizes.fresh(text)
        if tensor_id not in self._makers:
            self._texts.append((dim, text, f"t{tensor_id}_{axis}"))
        return dim

    @staticmethod
    def _contradiction(tensor_id: int, index: int, known: Any, said: Any) -> None:
        one, two = (
            value if isinstance(value, str) else f"[{', '.join(map(str, value))}]"
            for value in (known, said)
        )
        raise ModelError(f"tensor {tensor_id} is {one}, and {two} in graph#{index}")


def _attribute(op: Mapping[str, Any], name: str) -> Any:
    value = op["attrs"].get(name)
    return value.get("value") if isinstance(value, Mapping) else value


def _operations(file: BinaryIO) -> list[Mapping[str, Any]]:
    """The operations of a file; the fields that are read have been checked."""
    try:
        document = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"the file is no oneDNN graph: {error}") from error
    ops = document.get("graph") if isinstance(document, Mapping) else None
    if not isinstance(ops, list):
        raise ModelError('the file is no oneDNN graph: it has no list "graph"')
    for index, op in enumerate(ops):
        if not isinstance(op, dict) or not isinstance(op.get("kind"), str):
            raise ModelError(f"graph#{index} is no operation: {shown(op)}")
        op.setdefault("attrs", {})
        if not isinstance(op["attrs"], Mapping):
            raise ModelError(f"graph#{index} has attrs {shown(op['attrs'])}; expected an object")
        for ports in ("inputs", "outputs"):
            op.setdefault(ports, [])
            if not isinstance(op[ports], list) or not all(map(_is_tensor, op[ports])):
                raise ModelError(
                    f"graph#{index} has {ports} {shown(op[ports])}; expected tensors with id, "
                    "dtype and shape"
                )
    return ops


def _is_tensor(value: Any) -> bool:
    if not isinstance(value, Mapping) or type(value.get("id")) is not int:
        return False
    shape = value.get("shape")
    return (
        isinstance(value.get("dtype"), str)
        and isinstance(shape, list)
        and all(type(dim) is int and (dim >= 0 or dim == _OPEN) for dim in shape)
    )


def _order(ops: Sequence[Mapping[str, Any]]) -> list[int]:
    """Indices of the operations, each after those whose outputs it reads."""
    makers: dict[int, int] = {}
    for index, op in enumerate(ops):
        for tensor in op["outputs"]:
            if tensor["id"] in makers:
                raise ModelError(
                    f"tensor {tensor['id']} is made by graph#{makers[tensor['id']]} and by "
                    f"graph#{index}; expected one operation"
                )
            makers[tensor["id"]] = index
    waits = {
        index: {makers[tensor["id"]] for tensor in op["inputs"] if tensor["id"] in makers}
        for index, op in enumerate(ops)
    }
    return in_order(waits, "graph", "operations")
