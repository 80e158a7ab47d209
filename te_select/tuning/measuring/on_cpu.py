"""The place of CPU kernels: the memory of this process.

A place is a device that holds a workload's operands. Its class takes a `Problem` and has ``check``,
``time`` and ``take_turns``; `te_select.kinds` names that of each kind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from te_select.runtime.call.kernel import Kernel
from te_select.timing import rounds as clock
from te_select.timing.rounds import Timing
from te_select.timing.samples import time_calls
from te_select.tuning.measuring.problem import Problem


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
        return clock.take_turns(calls, rounds)

    def _call(self, kernel: Kernel) -> Callable[[], object]:
        problem = self._problem
        return functools.partial(kernel, problem.cond, problem.then, problem.else_, problem.out)
