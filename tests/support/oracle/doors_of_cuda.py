"""The doors of a CUDA device: the source of the kernels runs on the CPU, on a stand-in driver."""

import contextlib
from ctypes import c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

import numpy as np

from te_select import ArgumentError, load
from tests.support import cuda_standin
from tests.support.cuda_emulation import Emulated, lowered
from tests.support.hand_made import CPU, CUDA, HandMade, handed
from tests.support.oracle import doors_of_cpu as cpu
from tests.support.oracle.cases import WORKLOADS
from tests.support.oracle.comparison import NAMES, Door


@dataclass(frozen=True)
class OnCuda:
    """A library of all workloads of the cases, and what runs its kernels."""

    kernels: Any
    emulated: Emulated

    @contextlib.contextmanager
    def running(self):
        """A device that has no memory yet."""
        with cuda_standin.fake_driver(90) as fake:
            for symbol in self.emulated.functions:
                run = self.emulated.library[f"te_select_emulated_{symbol}"]
                fake.fake_runner(symbol.encode(), run)
            yield fake

    def lend(self, given):
        """Let the device have the memory of operands, and a kernel touch no other byte."""
        arrays = [each for each in given.values() if isinstance(each, np.ndarray)]
        self.emulated.allow(arrays)
        for each in arrays:
            at, size = c_uint64(each.ctypes.data), c_uint64(max(each.nbytes, 1))
            cuda_standin.fake_library().fake_memory(0, at, size)


def library(folder):
    """Build the library; workloads that differ only in how an element is called share a kernel."""
    shared = {}
    for each in WORKLOADS:
        key = each.shapes, each.element.width
        shared[key] = shared.get(key) or lowered(each, f"kernel_{len(shared)}")
    functions = [shared[each.shapes, each.element.width] for each in WORKLOADS]
    path = cuda_standin.build(WORKLOADS, folder / "cuda.so", functions=functions, plain=True)
    return OnCuda(load(path), Emulated.of(list(shared.values()), folder))


def _on_device(on_cuda, given):
    """The operands as memory of a CUDA device; what lies on one already lies in that of the CPU."""
    on_cuda.lend(given)
    return {name: _moved(operand) for name, operand in given.items()}


def _but_values(given):
    """The operands without inputs that have no axes, which may stay in memory of the CPU."""
    values = {name for name in NAMES[:3] if getattr(given[name], "shape", None) == ()}
    return {name: each for name, each in given.items() if name not in values}


def _moved(operand):
    if isinstance(operand, np.ndarray):
        return handed(operand, CUDA)
    if isinstance(operand, HandMade):
        operand.device = operand.tensor.device_type = CPU if operand.device == CUDA else CUDA
    return operand


def _by_kernel(on_cuda, workload, given):
    on_cuda.kernels[workload.name](**given | _on_device(on_cuda, _but_values(given)))


def _by_packed_function(on_cuda, workload, given):
    function = on_cuda.kernels[workload.name].function
    cpu.by_packed_function(function, _on_device(on_cuda, given))


def _by_plain_function(on_cuda, workload, given):
    on_cuda.lend(_but_values(given))
    cpu.by_plain_function(on_cuda.kernels, workload, given, c_void_p())


_OTHERS = {
    "strides": (ArgumentError, "{} has strides .*(C-contiguous|compact)"),
    "overlap": (ArgumentError, "out .* overlaps an input in part"),
    "half an element": (ArgumentError, "{} begins at .*divisible by 8"),
    "device": (ArgumentError, "{} is in memory of the CPU; expected"),
    "misaligned": (ArgumentError, "{} begins at .*divisible by"),
}
KERNEL = Door(_by_kernel, cpu.KERNEL.refuses | _OTHERS)
"""A kernel, called from Python."""
_ALIGNED = (ValueError, "{} begins at .*; expected an address divisible by")
PACKED = Door(
    _by_packed_function,
    cpu.PACKED.refuses
    | {"device": (ValueError, r"{} is on DLPack device \(1,0\); expected memory of a CUDA device")}
    | dict.fromkeys(("misaligned", "half an element"), _ALIGNED),
    cpu.PACKED.skips,
)
"""Its exported function, called by tvm-ffi."""
PLAIN = Door(
    _by_plain_function,
    cpu.PLAIN.refuses
    | {"half an element": _ALIGNED}
    | dict.fromkeys(("device", "past the end"), (ValueError, r"{} is on DLPack device \(1,0\)")),
    cpu.PLAIN.skips - {"device"},
)
"""Its plain C function."""
DOORS = {"CUDA kernel": KERNEL, "CUDA packed function": PACKED, "CUDA plain function": PLAIN}
