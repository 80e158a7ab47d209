"""TVM's own operator, without a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from te_select.bench.peers.base import Call, Peer, load, words
from te_select.operator.workload import Workload
from te_select.timing.operands import Operands


class TopiWhere(Peer):
    """``topi.where`` without a schedule, compiled by TVM for this CPU: one thread."""

    name = "topi.where"
    modules = ("tvm", "tvm.topi")
    install = "apache-tvm"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Compile, and bind the operands through DLPack."""
        target = load("te_select.backends.targets").resolve("native").tvm
        main = load("tvm").compile(where_function(sets[0]), target)["main"]
        return [bind_tensors(main, operands) for operands in sets]


def where_function(operands: Operands) -> Any:
    """``topi.where`` as a function of TVM, with the elements as unsigned integers."""
    te, topi = load("tvm.te"), load("tvm.topi")
    cond, then, else_ = operands.aligned()
    element = f"uint{words(then).itemsize * 8}"
    inputs = [
        te.placeholder(array.shape, kind, name)
        for name, kind, array in (
            ("cond", "bool", cond),
            ("then", element, then),
            ("else_", element, else_),
        )
    ]
    return te.create_prim_func([*inputs, topi.where(*inputs)])


def bind_tensors(function: Any, operands: Operands) -> Call:
    """A call of a compiled function on tensors that share the operands' memory."""
    from_dlpack = load("tvm_ffi").from_dlpack
    arrays = [*operands.aligned(), operands.out]
    tensors = [from_dlpack(array if array.dtype == np.bool_ else words(array)) for array in arrays]
    return lambda: function(*tensors)
