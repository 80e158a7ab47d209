"""Other systems that select on CUDA devices, each used in the fastest way its users would."""

import math
from collections.abc import Sequence
from typing import Any

from te_select.bench.cuda.device_sets import DeviceSet, as_bytes, result, strides, torch_tensors
from te_select.bench.peers import jit, libraries
from te_select.bench.peers.base import Call, Peer, UnsupportedError, load
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.verify.reference import Array

_LOOPS = 4  # loops into which the Triton kernel cuts its index
_MOST_NARROW = 2**31 - 2**13  # elements that 32 bits can index, with those of the last block


class CudaPeer(Peer):
    """A peer whose calls only enqueue work, by default on the default stream."""

    on_device = True
    # Whether a call can be captured: on torch's current stream, and without an allocation.
    graphs: bool = False

    def available(self) -> str | None:
        """Why this peer cannot run here; a package that sees no GPU counts as missing."""
        reason = super().available()
        if reason is None and not load("torch").cuda.is_available():
            return "torch sees no CUDA device"
        return reason

    def result(self, value: Any, operands: Any) -> Array:
        """The set's own output, into which the call wrote."""
        return result(operands)


class Torch(libraries.Torch, CudaPeer):
    """``torch.where`` into an output that is reused."""

    graphs = True
    tensors = staticmethod(torch_tensors)


class TorchCompile(jit.TorchCompile, CudaPeer):
    """``torch.where`` compiled by Inductor, which writes the output that it is given."""

    graphs = True
    modules = ("torch", "triton")
    available = CudaPeer.available  # it writes Triton, and needs no C++ compiler
    tensors = staticmethod(torch_tensors)


class Triton(CudaPeer):
    """A kernel in Triton, autotuned, over words of the elements' width."""

    name = "triton"
    graphs = True
    modules = ("triton", "torch")
    install = "triton"

    def prepare(self, workload: Workload, sets: Sequence[DeviceSet]) -> list[Call]:
        """Compile for these very shapes, and try its configs."""
        torch = load("torch")
        kernel = load("te_select.bench.cuda.triton_select").select
        pattern = access_pattern(workload)
        missing = _LOOPS - len(pattern.loops)
        if missing < 0:
            raise UnsupportedError(f"is written for at most {_LOOPS} merged loops")
        words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
        kinds = (torch.uint8, *[words[pattern.width]] * 3)
        # Unit loops go innermost: dividing by 1 costs nothing, and the outermost has no modulo.
        extents = [loop.bound({}) for loop in pattern.loops] + [1] * missing
        steps = strides(pattern) + [dict.fromkeys("cte", 0)] * missing
        sizes = [*extents[1:], *(step[letter] for letter in "cte" for step in steps)]
        count = math.prod(extents)
        wide = count > _MOST_NARROW

        def grid(meta: dict[str, int]) -> tuple[int]:
            return (-(-count // meta["BLOCK"]),)

        def bind(operands: DeviceSet) -> Call:
            tensors = [
                torch.from_dlpack(as_bytes(array)).view(kind)
                for array, kind in zip(operands.arrays(), kinds, strict=True)
            ]
            return lambda: kernel[grid](*tensors, count, *sizes, wide)

        return [bind(operands) for operands in sets]


PEERS = (Torch, TorchCompile, Triton)
