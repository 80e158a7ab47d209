"""Where CUDA kernels are checked and timed: device 0."""

import itertools
from collections.abc import Callable, Mapping

import tvm_ffi

from te_select.errors import TuningError
from te_select.operator.access import access_pattern
from te_select.runtime.call.cuda import driver
from te_select.runtime.call.cuda.kernel import CudaKernel
from te_select.runtime.call.kernel import Kernel
from te_select.timing.cuda import clocks
from te_select.timing.cuda.roof import sets_for
from te_select.timing.rounds import FEWEST, Timing
from te_select.tuning.measuring.run_worker import Problem
from te_select.verify.cuda import OnDevice, on_device


class Cuda:
    """CUDA device 0.

    A kernel is checked with copies of the operands, guards around ``out`` included. It is timed by
    replaying a CUDA graph of calls on operands that stay on the device. The calls use several sets
    of operands in turns, so that no call finds those of the call before in the second-level cache.

    Parameters
    ----------
    problem
        The operands.

    Raises
    ------
    TuningError
        If there is no such device, or it has not enough memory.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        moved = access_pattern(problem.workload).bytes_moved()
        try:
            count = sets_for(moved, driver.devices()[0].l2)
            self._sets = [_copied(problem) for _ in range(count)]
        except driver.CudaError as error:
            raise TuningError(f"the operands cannot be put on the device: {error}") from error

    def check(self, kernel: CudaKernel) -> str:
        """Compare a kernel with NumPy, bit for bit."""
        return self._problem.check(OnDevice(kernel))

    def times(self, kernels: Mapping[str, Kernel], turns: int | None) -> Mapping[str, Timing]:
        """Time kernels in turns by events; a sample is the mean of the calls that fill 2 ms."""
        samplers = {name: clocks.replayed(self._call(each)) for name, each in kernels.items()}
        return clocks.take_turns(samplers, turns or FEWEST)

    def _call(self, kernel: Kernel) -> Callable[[], object]:
        turns = itertools.cycle(self._sets)
        function = kernel.function
        return lambda: function(*next(turns))


def _copied(problem: Problem) -> list[tvm_ffi.Tensor]:
    """Cond, then, else_ and out on the device, in the form that the exported function takes."""
    arrays = (problem.cond, problem.then, problem.else_, problem.out)
    return [tvm_ffi.from_dlpack(on_device(array)) for array in arrays]
