"""Checks and times libraries on an RPC server; the client's side of one connection.

It is a process of its own, because a call over RPC never ends if the other side hangs.
"""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tvm import rpc, runtime

from te_select.errors import SelectError, TuningError
from te_select.operator.workload import Workload
from te_select.runtime.artifact import stored
from te_select.runtime.call.cpu import features
from te_select.timing import rounds
from te_select.timing.cores import Load
from te_select.timing.inputs import Mask
from te_select.tuning.fleet.tracker import Address, free_server
from te_select.tuning.measuring import run_worker
from te_select.tuning.measuring.process import reason
from te_select.tuning.measuring.run_worker import Problem
from te_select.verify.guarded import FILL
from te_select.verify.reference import bits

# Measures seconds per call.
_Sample = Callable[[], float]


class Worker(run_worker.Worker):
    """A session on a server, with the operands of the last workload that was prepared there."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count()
        self._shape: tuple[int, ...] = ()
        self._inputs: dict[str, Any] = {}

    def connect(self, address: Address, key: str, probe: Path) -> dict[str, Any]:
        """Wait for a free server, and open the session on it."""
        host, port, match = free_server(address, key)
        try:
            self._session = rpc.connect(host, port, match)
            self._session.upload(str(probe), "probe.so")
            self._probe = self._session.load_module("probe.so")
            self._probe["watch_client"](port)
            self._probe["watch"](0)
            self._features = set(str(self._probe["features"]()).split())
            cpu = features.parsed(str(self._probe["cpuinfo"]()))
            return {"machine": cpu.get("model name", cpu.get("CPU part", ""))}
        except Exception as error:  # tvm's many kinds
            raise TuningError(f"{host}:{port} cannot be reached: {reason(error)}") from error

    def prepare(self, workload: Workload, mask: Mask) -> dict[str, Any]:
        """Send the operands of a workload, and NumPy's result, unless they are there."""
        try:
            return super().prepare(workload, mask)
        except SelectError:
            raise
        except Exception as error:  # tvm's many kinds
            return {"lost": reason(error)}

    def measure(self, paths: Sequence[Path], turns: int | None, limit: float) -> dict[str, Any]:
        """Check and time libraries as on this machine; ``"load"`` is the server's meanwhile."""
        ends = time.monotonic() + limit  # then the server ends the run
        try:
            self._probe["watch"](math.ceil(limit))
            begun = self._load()
            answer = super().measure(paths, turns, limit)
            self._probe["watch"](0)
            return answer | {"load": self._load().since(begun)}
        except Exception as error:  # tvm's many kinds
            if time.monotonic() < ends:
                return {"lost": reason(error)}
            return {"failure": f"the run took longer than {limit:g} s"}

    def times(
        self, samples: Mapping[str, _Sample], turns: int | None
    ) -> Mapping[str, rounds.Timing]:
        """Time kernels in turns."""
        return rounds.sample_in_turns(samples, turns or rounds.FEWEST)

    def _load(self) -> Load:
        """The load of the server up to now; its session's process measures."""
        return Load.read(*map(float, str(self._probe["load"]()).split("\n")))

    def _hold(self, problem: Problem) -> None:
        self._inputs = {}
        self._shape = tuple(map(int, problem.workload.out_shape)) or (1,)
        cpu = self._session.cpu()
        expected = problem.expected()
        arrays = {
            "cond": problem.cond.view(np.uint8),
            "checked_cond": problem.checked_cond.view(np.uint8),
            "then": bits(problem.then),
            "else_": bits(problem.else_),
            "expected": expected,
        }
        self._inputs = {name: runtime.tensor(array, device=cpu) for name, array in arrays.items()}
        self._inputs["out"] = runtime.empty(expected.shape, str(expected.dtype), cpu)

    def _checked(self, path: Path) -> tuple[Any, Any]:
        """The timer of a library that computes the right bits, and what times with it."""
        manifest = stored.read(path).manifest
        if missing := sorted(set(manifest.target["cpu_features"]) - self._features):
            raise TuningError(
                f"the server's CPU lacks {', '.join(missing)}, which target "
                f"{manifest.target['name']} needs; expected the target of the servers' own CPU, or "
                "a level such as x86-64-v3"
            )
        name = f"{next(self._numbers)}.so"  # a path that was loaded once would not be loaded again
        self._session.upload(str(path), name)
        module = self._session.load_module(name)
        self._session.remove(name)
        workload = manifest.kernels[0].workload
        given = self._inputs
        symbol = f"{workload.name}__bits"
        then, else_, out = given["then"], given["else_"], given["out"]
        self._probe["fill"](out, FILL)
        module[symbol](given["checked_cond"], then, else_, out)
        at = int(self._probe["compare"](out, given["expected"]))
        if at >= 0:
            index = np.unravel_index(at // workload.element.width, self._shape)
            place = ",".join(str(int(i)) for i in index)
            raise TuningError(f"out[{place}] is not what NumPy selects")

        def seconds(least: float) -> float:
            milliseconds = math.ceil(1e3 * least)
            evaluator = module.time_evaluator(
                symbol, self._session.cpu(), number=1, repeat=1, min_repeat_ms=milliseconds
            )
            return max(float(evaluator(given["cond"], then, else_, out).mean), 1e-9)

        def sample() -> float:
            seconds(rounds.WARM_UP)
            return seconds(rounds.SHORTEST_SAMPLE)

        return sample, self
