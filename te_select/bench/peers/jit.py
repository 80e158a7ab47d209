"""Peers that compile Python functions: torch.compile and JAX."""

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from te_select.bench.peers.base import Call, Peer, load
from te_select.bench.peers.libraries import Torch
from te_select.operator.access import LARGEST_INTEGER
from te_select.operator.workload import Workload
from te_select.verify.reference import Array


class TorchCompile(Torch):
    """``torch.where`` compiled by Inductor, which writes the output that it is given."""

    name = "torch.compile"

    def available(self) -> str | None:
        """Why this peer cannot run here; Inductor writes C++, so it needs a compiler, too."""
        compilers = (os.environ.get("CXX", ""), "g++", "clang++", "c++")
        if not any(name and shutil.which(name) for name in compilers):
            return "no C++ compiler is found; install g++ or clang++"
        return super().available()

    @staticmethod
    def where(torch: Any) -> Callable[..., None]:
        """Compile for one set of shapes."""
        # torch.compile gives up on a function that was compiled for eight other shapes.
        load("torch._dynamo").reset()

        def where(cond: Any, then: Any, else_: Any, out: Any) -> None:
            out.copy_(torch.where(cond, then, else_))

        compiled: Callable[..., None] = torch.compile(where, dynamic=False, fullgraph=True)
        return compiled


class Jax(Peer):
    """``jax.numpy.where`` under ``jax.jit``; XLA allocates the output."""

    name = "jax"
    modules = ("jax",)
    install = "jax"

    def prepare(self, workload: Workload, sets: Sequence[Any]) -> list[Call]:
        """Compile, and give the operands to JAX, which takes them without a copy."""
        jax = load("jax")
        device = jax.devices("cpu")[0]
        where = jax.jit(jax.numpy.where)
        wide = workload.element.width >= LARGEST_INTEGER
        # Without x64 such elements would silently become half as wide. It is switched on only
        # here: a function that is compiled ahead of time does not read the switch again.
        # Older versions of JAX have it in jax.experimental.
        home = jax if hasattr(jax, "enable_x64") else load("jax.experimental")
        with home.enable_x64(True) if wide else contextlib.nullcontext():
            moved = [
                [jax.device_put(array, device) for array in operands.aligned()] for operands in sets
            ]
            if wide:
                where = where.lower(*moved[0]).compile()

        def bind(arrays: list[Any]) -> Call:
            return lambda: where(*arrays).block_until_ready()

        return [bind(arrays) for arrays in moved]

    def result(self, value: Any, operands: Any) -> Array:
        """The array that was allocated."""
        return np.asarray(value)
