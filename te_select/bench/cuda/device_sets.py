"""Operands of a bench in a CUDA device's memory: sets used in turns, so that no cache helps."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from te_select.bench.peers.base import load
from te_select.operator.access import AccessPattern
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.runtime.call.cuda.device_array import DeviceArray
from te_select.timing.inputs import Operands
from te_select.verify.cuda import on_device
from te_select.verify.reference import Array

_UINT8 = ELEMENT_TYPES["uint8"]


@dataclass(frozen=True)
class DeviceSet:
    """One set of operands on the device; all contestants read the same inputs.

    Parameters
    ----------
    host
        The same operands in memory of the CPU. Results are compared in its ``out``.
    cond, then, else_, out
        Arrays on the device.
    """

    host: Operands
    cond: DeviceArray
    then: DeviceArray
    else_: DeviceArray
    out: DeviceArray

    def arrays(self) -> tuple[DeviceArray, ...]:
        """Cond, then, else_ and out."""
        return self.cond, self.then, self.else_, self.out


def make_sets(host: Operands, count: int) -> list[DeviceSet]:
    """Copy one set of operands to the device, ``count`` times.

    Raises
    ------
    CudaError
        If there is no device, or not enough memory.
    """
    return [DeviceSet(host, *map(on_device, host.arrays())) for _ in range(count)]


def as_bytes(array: DeviceArray) -> DeviceArray:
    """The same memory as an array of bytes, which every library takes."""
    return DeviceArray(array.memory, _UINT8, (array.nbytes,), array.offset)


def torch_tensors(operands: DeviceSet) -> list[Any]:
    """The same memory as torch tensors, in shapes that torch broadcasts as the rule does."""
    torch = load("torch")
    host = operands.host
    kinds = (torch.bool, *[getattr(torch, host.workload.dtype)] * 3)
    return [
        torch.from_dlpack(as_bytes(array)).view(kind).reshape(like.shape)
        for array, kind, like in zip(
            operands.arrays(), kinds, (*host.aligned(), host.out), strict=True
        )
    ]


def strides(pattern: AccessPattern) -> list[dict[str, int]]:
    """For every merged loop the strides of cond, then and else_ in carried elements, by letter."""
    steps = []
    size = dict.fromkeys("cte", 1)
    for loop in reversed(pattern.loops):
        steps.append({letter: size[letter] * (letter in loop.movers) for letter in "cte"})
        for letter in loop.movers:
            size[letter] *= loop.bound({})
    return steps[::-1]


def result(operands: DeviceSet) -> Array:
    """What a contestant left in out, in memory of the CPU."""
    operands.out.read(operands.host.out)
    return operands.host.out


def poison(operands: DeviceSet, value: int) -> None:
    """Fill out with a byte, here and on the device."""
    operands.host.out.reshape(-1).view(np.uint8)[...] = value
    operands.out.write(operands.host.out)
