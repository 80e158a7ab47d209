"""Where kernels are checked and timed: on the CPU, or on a CUDA device."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping
from typing import Protocol

import tvm_ffi

from te_select.access import access_pattern
from te_select.bench import rounds as cpu_rounds
from te_select.bench.cuda import timing as cuda_timing
from te_select.bench.cuda.graphs import replayed
from te_select.bench.cuda.roof import sets_for
from te_select.bench.rounds import Timing
from te_select.dtypes import ELEMENT_TYPES
from te_select.errors import TuningError
from te_select.on_device import OnDevice
from te_select.runtime import cuda_driver
from te_select.runtime.cuda_kernel import CudaKernel
from te_select.runtime.device_array import DeviceArray
from te_select.runtime.kernel import Kernel
from te_select.tuning.measure.problem import Problem
from te_select.tuning.measure.timing import FEWEST, time_calls


class Place(Protocol):
    """A device that has a workload's operands."""

    def check(self, kernel: Kernel) -> str:
        """What is wrong with what a kernel computes, in one line; empty if nothing is."""

    def time(self, kernel: Kernel) -> tuple[float, ...]:
        """Seconds per call, one for each sample."""

    def take_turns(self, kernels: Mapping[str, Kernel], rounds: int) -> Mapping[str, Timing]:
        """Times of kernels, by name, that take turns."""


class Cpu:
    """The CPU; operands are reused, so that small ones are in its caches.

    Parameters
    ----------
    problem
        The operands.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def check(self, kernel: Kernel) -> str:
        """Compare a kernel with NumPy, bit for bit."""
        return self._problem.check(kernel)

    def time(self, kernel: Kernel) -> tuple[float, ...]:
        """Time a kernel by the clock."""
        return time_calls(self._call(kernel))

    def take_turns(self, kernels: Mapping[str, Kernel], rounds: int) -> Mapping[str, Timing]:
        """Time kernels in turns."""
        calls = {name: self._call(kernel) for name, kernel in kernels.items()}
        return cpu_rounds.take_turns(calls, rounds)

    def _call(self, kernel: Kernel) -> Callable[[], object]:
        problem = self._problem
        return functools.partial(kernel, problem.cond, problem.then, problem.else_, problem.out)


class Cuda:
    """CUDA device 0.

    A kernel is checked with copies of the operands, guards around ``out`` included. It is timed by
    replaying a CUDA graph of calls, on operands that stay there: several sets of them
    in turns, so that no call finds in the second-level cache what the one before it left.

    Parameters
    ----------
    problem
        The operands.

    Raises
    ------
    TuningError
        If the device is not there, or has not enough memory.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        moved = access_pattern(problem.workload).bytes_moved()
        try:
            count = sets_for(moved, cuda_driver.devices()[0].l2)
            self._sets = [_copied(problem) for _ in range(count)]
        except cuda_driver.CudaError as error:
            raise TuningError(f"the operands cannot be put on the device: {error}") from error

    def check(self, kernel: Kernel) -> str:
        """Compare a kernel with NumPy, bit for bit."""
        if not isinstance(kernel, CudaKernel):
            raise TuningError(f"{kernel!r} is for no CUDA device")
        return self._problem.check(OnDevice(kernel))

    def time(self, kernel: Kernel) -> tuple[float, ...]:
        """Time a kernel by events; a sample is the mean of as many calls as last 2 ms."""
        return self.take_turns({"alone": kernel}, FEWEST)["alone"].seconds

    def take_turns(self, kernels: Mapping[str, Kernel], rounds: int) -> Mapping[str, Timing]:
        """Time kernels in turns."""
        return cuda_timing.take_turns(
            {name: replayed(self._call(kernel)) for name, kernel in kernels.items()}, rounds
        )

    def _call(self, kernel: Kernel) -> Callable[[], object]:
        turns = itertools.cycle(self._sets)
        function = kernel.function
        return lambda: function(*next(turns))


def place_of(kernel: Kernel, problem: Problem) -> Place:
    """Put the operands where a kernel runs."""
    return Cuda(problem) if isinstance(kernel, CudaKernel) else Cpu(problem)


def _copied(problem: Problem) -> list[tvm_ffi.Tensor]:
    """Cond, then, else_ and out on the device, as the exported function takes them at once."""
    element = problem.workload.element
    tensors = []
    for array, kind in (
        (problem.cond, ELEMENT_TYPES["bool"]),
        (problem.then, element),
        (problem.else_, element),
        (problem.out, element),
    ):
        there = DeviceArray.empty(kind, array.shape)
        there.write(array)
        tensors.append(tvm_ffi.from_dlpack(there))
    return tensors
