"""Where kernels are checked and timed; each kind of machine has a place of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from te_select import kinds
from te_select.runtime.call.kernel import Kernel
from te_select.timing.rounds import Timing
from te_select.tuning.measuring.problem import Problem


class Place(Protocol):
    """A device that holds a workload's operands."""

    def check(self, kernel: Kernel) -> str:
        """What is wrong with a kernel's result, in one line; empty if it is right."""

    def time(self, kernel: Kernel) -> tuple[float, ...]:
        """Seconds per call, one for each sample."""

    def take_turns(self, kernels: Mapping[str, Kernel], rounds: int) -> Mapping[str, Timing]:
        """Times of kernels that take turns, by name."""


def place_of(kernel: Kernel, problem: Problem) -> Place:
    """Put the operands where a kernel runs."""
    place: Place = kinds.load(kinds.kind(kernel.kind).place)(problem)
    return place
