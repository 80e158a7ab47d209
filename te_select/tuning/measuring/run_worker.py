"""Checks and times libraries on this machine, with operands that are made once a workload.

`Worker` runs in a process of its own, which never imports tvm.
"""

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from te_select.base import kinds
from te_select.base.scratch import NoRoomError
from te_select.errors import ArtifactError, TuningError
from te_select.operator.workload import Workload
from te_select.runtime.call import loading
from te_select.timing import rounds
from te_select.timing.inputs import USUAL, Mask, aligned_empty
from te_select.tuning.measuring.process import reason
from te_select.verify.checks import Operands, runs
from te_select.verify.guarded import Bytes, randomize
from te_select.verify.reference import Array, bits, ints, placed, special_bits
from te_select.verify.verify import run

SEED = 0
_OWN_GROUPS, _GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")
_GIB = 1 << 30


class Problem:
    """The operands of one workload, made once for all of its candidates.

    Then and else begin with the values that arithmetic would change (NaN payloads, -0.0). The rest
    is random bits. A kernel is checked with a cond whose first half is random and whose second half
    comes in runs, so that errors in skipping show. It is timed with the cond of a mask.

    Parameters
    ----------
    workload
        The workload, of int dims only.
    mask
        How the cond of the timing is drawn.
    """

    def __init__(self, workload: Workload, mask: Mask = USUAL) -> None:
        self.workload = workload
        self._operands = operands = Operands(workload, SEED)
        operands.special_values(special_bits(workload.dtype).size ** 2)
        self.checked_cond, self.then, self.else_, self.out = operands.arrays()
        self.cond = aligned_empty(self.checked_cond.shape, np.dtype(np.bool_))
        self.cond.reshape(-1)[...] = mask.draw(operands.random, self.cond.size)
        operands.mask(partial(_checked, operands.random))
        operands.selected = self.expected().tobytes()

    def check(self, kernel: Callable[..., Any]) -> str:
        """Compare a kernel, which takes ``out=``, with NumPy; what is wrong, in one line."""
        return run(kernel, self._operands)

    def times(
        self, kernels: Mapping[str, Callable[..., Any]], turns: int | None
    ) -> Mapping[str, rounds.Timing]:
        """Time kernels in turns, or each alone; operands are reused, small ones in the caches."""
        given = self.cond, self.then, self.else_, self.out
        calls = {name: partial(kernel, *given) for name, kernel in kernels.items()}
        if turns is None:
            return {name: rounds.Timing(rounds.time_calls(call)) for name, call in calls.items()}
        return rounds.take_turns(calls, turns)

    def expected(self) -> Array:
        """The selected bits, as unsigned integers."""
        mask = self.checked_cond.view(np.uint8) != 0
        cond, then, else_ = placed(self.workload, mask, self.then, self.else_)
        taken, left = bits(then), bits(else_)
        mask = cond[..., None] if taken.ndim > cond.ndim else cond
        return np.asarray(np.where(mask, taken, left), order="C")


class Worker:
    """Runs kernels of the workload that was prepared last, all for one kind of machine."""

    def __init__(self) -> None:
        self._prepared: tuple[Workload, Mask] | None = None
        self._problem: Problem | None = None
        self._place: Any = None  # the problem itself, or the device of the kind

    def prepare(self, workload: Workload, mask: Mask) -> dict[str, Any]:
        """Make the operands, unless they are there; those of the workload before go first."""
        if self._prepared != (workload, mask):
            self._prepared = self._problem = self._place = None
            self._hold(Problem(workload, mask))
            self._prepared = workload, mask
        return {}

    def measure(self, paths: Sequence[Path], turns: int | None, limit: float) -> dict[str, Any]:
        """Check libraries, and time those that are right: in turns, or one alone."""
        results: list[dict[str, Any]] = [{} for _ in paths]
        kernels = {}
        for number, path in enumerate(paths):
            try:
                kernels[str(number)], place = self._checked(path)
            except NoRoomError:
                raise
            except (ArtifactError, TuningError) as error:
                results[number] = {"failure": reason(error)}
        for name, timing in (place.times(kernels, turns) if kernels else {}).items():
            results[int(name)] = {"seconds": timing.seconds}
        return {"results": results}

    def _hold(self, problem: Problem) -> None:
        self._problem = problem

    def _checked(self, path: Path) -> tuple[Any, Any]:
        """A kernel that computes the right bits, and the place that checked it."""
        kernel: Any = loading.load(path)
        if self._place is None:
            place = kinds.kind(kernel.kind).place
            self._place = kinds.load(place)(self._problem) if place else self._problem
        if failure := self._place.check(kernel):
            raise TuningError(failure)
        return kernel, self._place


def memory_needed(workload: Workload) -> int:
    """Bytes of a workload's operands: cond twice, then, else, and out with copies to compare."""
    width = workload.element.width
    shapes = (*workload.shapes, workload.out_shape)
    cond, then, else_, out = (math.prod(ints(shape)) for shape in shapes)
    return 2 * cond + width * (then + else_ + 3 * out)


def refusal(workload: Workload) -> str:
    """Why a workload's operands cannot be made, in one line; empty if they can."""
    needed = memory_needed(workload)
    available = memory_available()
    if needed <= available:
        return ""
    return (
        f"the operands take {needed / _GIB:.1f} GiB, and {available / _GIB:.1f} GiB of memory "
        "are available; expected a smaller workload"
    )


def memory_available() -> int:
    """Bytes of memory that this process may still take, by the system and all of its cgroups."""
    limits = [psutil.virtual_memory().available]
    own = ""
    with contextlib.suppress(OSError):  # version 2 has one line, "0::/group/of/groups"
        groups = (line.partition("::")[2] for line in _OWN_GROUPS.read_text().splitlines())
        own = next(filter(None, groups), "")
    group = _GROUPS / own.strip("/")
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError):  # the text is "max" if there is no limit
            limits.append(int((folder / "memory.max").read_text()))
    return int(min(limits))


def _checked(random: np.random.Generator, count: int) -> Bytes:
    """First half: random bytes, every other one 0. Second half: runs of 0 and of 1."""
    mask = np.empty(count, np.uint8)
    half = count // 2
    randomize(random, mask[:half])
    mask[:half:2] = 0
    mask[half:] = runs(random, count - half)
    return mask
