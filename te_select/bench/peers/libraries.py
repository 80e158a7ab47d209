"""Peers that are called without compiling: NumPy and torch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from te_select.bench.peers.base import Call, Peer, load
from te_select.operator.workload import Workload
from te_select.timing.cores import threads
from te_select.timing.inputs import Operands
from te_select.verify.reference import Array


class NumPy(Peer):
    """``numpy.where``, which allocates its output and has one thread."""

    name = "numpy"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Bind the operands."""
        return [partial(np.where, *operands.aligned()) for operands in sets]

    def result(self, value: Any, operands: Operands) -> Array:
        """The array that was allocated."""
        return np.asarray(value)


class NumPyCopyTo(Peer):
    """Two ``numpy.copyto`` into an output that is reused, the second under the mask."""

    name = "numpy-copyto"

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Bind the operands."""

        def copy(cond: Array, then: Array, else_: Array, out: Array) -> None:
            np.copyto(out, else_)
            np.copyto(out, then, where=cond)

        return [partial(copy, *(*operands.aligned(), operands.out)) for operands in sets]


class Torch(Peer):
    """``torch.where`` into an output that is reused."""

    name = "torch"
    modules: tuple[str, ...] = ("torch",)
    install = "torch"

    def prepare(self, workload: Workload, sets: Sequence[Any]) -> list[Call]:
        """Bind the operands as tensors over the same memory."""
        torch = load("torch")
        torch.set_num_threads(threads())
        where = self.where(torch)
        return [partial(where, *self.tensors(operands)) for operands in sets]

    @staticmethod
    def where(torch: Any) -> Callable[..., None]:
        """The function that selects into its last argument."""

        def where(cond: Any, then: Any, else_: Any, out: Any) -> None:
            torch.where(cond, then, else_, out=out)

        return where

    @staticmethod
    def tensors(operands: Any) -> list[Any]:
        """Cond, then, else and out as torch tensors over the same memory."""
        torch = load("torch")
        kind = getattr(torch, operands.workload.dtype)
        cond, then, else_ = operands.aligned()
        tensors = [torch.from_numpy(cond)]
        for array in (then, else_, operands.out):
            # NumPy cannot hand over bfloat16 and float8 themselves, nor 0-d views of another type.
            flat = array.reshape(-1).view(np.uint8)
            tensors.append(torch.from_numpy(flat).view(kind).reshape(array.shape))
        return tensors
