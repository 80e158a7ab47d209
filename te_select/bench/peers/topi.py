"""TVM's own operator, as it comes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from te_select.bench.operands import Operands
from te_select.bench.peers.base import Call, Peer, load, words
from te_select.workload import Workload


class TopiWhere(Peer):
    """``topi.where`` without a schedule, compiled by TVM for this CPU: one thread."""

    name = "topi.where"
    modules = ("tvm", "tvm.topi")
    install = "apache-tvm"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Compile, and bind the operands through DLPack."""
        tvm, te, topi = load("tvm"), load("tvm.te"), load("tvm.topi")
        target = load("te_select.targets").resolve("native").tvm
        cond, then, else_ = sets[0].aligned()
        element = f"uint{words(then).itemsize * 8}"
        inputs = [
            te.placeholder(array.shape, kind, name)
            for name, kind, array in (
                ("cond", "bool", cond),
                ("then", element, then),
                ("else_", element, else_),
            )
        ]
        function = te.create_prim_func([*inputs, topi.where(*inputs)])
        main = tvm.compile(function, target)["main"]
        from_dlpack = load("tvm_ffi").from_dlpack

        def bind(operands: Operands) -> Call:
            arrays = [*operands.aligned(), operands.out]
            tensors = [
                from_dlpack(array if array.dtype == np.bool_ else words(array)) for array in arrays
            ]
            return lambda: main(*tensors)

        return [bind(operands) for operands in sets]
