"""Reads a workload's line of a log: which Select it is, without TVM.

A record names its workload by the number of a line. If a line were deleted, every record behind it
would get another workload. So the content of a line is compared with what the record itself says.

The format of the line is TVM's own: a hash, and the IR as a graph of nodes in JSON. A node names
others by their numbers.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from te_select.operator.access import AccessPattern, Loop, merged

_HEADER = 8  # bytes before the graph: the graph's size in bytes, little-endian
Argument = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class WorkloadLine:
    """The content of a workload's line.

    Parameters
    ----------
    text
        The line.
    tvm
        The version of TVM that wrote it.
    key
        The `AccessPattern.key` of the Select.
    arguments
        Element type and shape of cond, then, else and out, as TVM carries them.
    """

    text: str
    tvm: str
    key: str
    arguments: tuple[Argument, ...]


def read(text: str) -> WorkloadLine:
    """Read a workload's line.

    Raises
    ------
    ValueError, TypeError, KeyError, IndexError, AttributeError
        If it is not what TVM writes for a Select.
    """
    digest, encoded = json.loads(text)
    if not (isinstance(digest, str) and digest.lstrip("-").isdigit()):
        raise ValueError("expected [hash, base64]")
    data = base64.b64decode(encoded, validate=True)
    if int.from_bytes(data[:_HEADER], "little") != len(data) - _HEADER:
        raise ValueError("it is cut short, or longer than it says")
    graph = json.loads(data[_HEADER:])
    select = _Select(graph["nodes"])
    return WorkloadLine(text, str(graph["metadata"]["tvm_version"]), select.key, select.arguments)


class _Select:
    """The Select of `te_select.operator.definition`, in a graph of nodes.

    Three buffers are stored to: ``then_b`` and ``else_b``, into which then and else are broadcast,
    and ``out``.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        self._nodes = nodes
        stores = {
            self._data(self._data(store["buffer"])["name"]): store
            for store in (node["data"] for node in nodes if node["type"] == "tirx.BufferStore")
        }
        if set(stores) != {"then_b", "else_b", "out"}:
            raise ValueError("it is no Select")
        out = stores["out"]
        chosen = self._data(out["value"])
        cond = self._data(self._data(chosen["condition"])["a"])
        loops = self._indices(out)
        moving = [set(self._indices(cond))]
        loads = [cond]
        for name, side in (("then_b", "true_value"), ("else_b", "false_value")):
            load = self._data(stores[name]["value"])
            loads.append(load)
            moving.append(self._through(stores[name], load, self._data(chosen[side])))
        self.arguments = tuple(
            self._argument(buffer)
            for buffer in (*(load["source"] for load in loads), out["buffer"])
        )
        element, extents = self.arguments[-1]
        nest = [
            Loop((axis,), (extent,), *(loop in moves for moves in moving))
            for axis, (loop, extent) in enumerate(zip(loops, extents, strict=True))
            if extent != 1
        ]
        width = int(element.removeprefix("uint")) // 8
        self.key = AccessPattern(tuple(merged(nest)), width).key

    def _data(self, node: int) -> Any:
        return self._nodes[node]["data"]

    def _indices(self, access: Mapping[str, Any]) -> list[int]:
        """The nodes that index an access; a loop's variable is one node."""
        return list(self._data(access["indices"]))

    def _through(
        self, store: Mapping[str, Any], load: Mapping[str, Any], use: Mapping[str, Any]
    ) -> set[int]:
        """The loops of out along which the operand moves that ``store`` copied to its buffer."""
        inside = set(self._indices(load))
        pairs = zip(self._indices(store), self._indices(use), strict=True)
        return {outer for inner, outer in pairs if inner in inside}

    def _argument(self, buffer: int) -> Argument:
        kind = self._data(self._data(buffer)["ty"])
        shape = (self._data(self._data(extent)["value"]) for extent in self._data(kind["shape"]))
        return self._data(kind["dtype"])["dtype"], tuple(shape)
