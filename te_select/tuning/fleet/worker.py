"""Checks and times libraries on an RPC server; the client's side of one connection.

It is a process of its own, because a call over RPC never ends if the other side hangs.
"""

from __future__ import annotations

import functools
import itertools
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tvm import rpc, runtime

from te_select.errors import SelectError, TuningError
from te_select.operator.workload import Workload
from te_select.runtime.artifact import stored
from te_select.timing.cores import Load
from te_select.timing.operands import Mask
from te_select.timing.rounds import SHORTEST_SAMPLE as SHORTEST_TURN
from te_select.timing.rounds import WARM_UP
from te_select.timing.samples import SHORTEST_SAMPLE, enough
from te_select.tuning.fleet.tracker import Address, free_server
from te_select.tuning.measuring.problem import Problem
from te_select.tuning.measuring.serve import reason
from te_select.verify.guarded import FILL
from te_select.verify.reference import bits

_ESTIMATES = 3  # calls; the fastest decides how many calls make a sample


class WrongBitsError(TuningError):
    """A candidate that wrote wrong bits."""


Handler = Callable[..., dict[str, Any]]


def _guarded(handler: Handler) -> Handler:
    """Tell a failure of a candidate from the loss of the server."""

    @functools.wraps(handler)
    def handle(self: Worker, *arguments: Any) -> dict[str, Any]:
        try:
            return handler(self, *arguments)
        except SelectError as error:
            return _failure(error)
        except Exception as error:  # tvm's many kinds
            if time.monotonic() < self._ends:
                return {"lost": reason(error)}
            return {"failure": f"the run took longer than {arguments[-1]:g} s", "tainted": True}

    return handle


class Worker:
    """A session on a server, with the operands of the last workload that was prepared."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._session: Any = None
        self._probe: Any = None
        self._features: frozenset[str] = frozenset()
        self._shape: tuple[int, ...] = ()
        self._inputs: dict[str, Any] = {}
        self._ends = math.inf  # when the server ends the run, of the monotonic clock

    def connect(self, address: Address, key: str, probe: Path) -> dict[str, Any]:
        """Wait for a free server, and open the session on it."""
        host, port, match = free_server(address, key)
        try:
            session = rpc.connect(host, port, match)
            session.upload(str(probe), "probe.so")
            self._probe = session.load_module("probe.so")
            self._probe["watch_client"](port)
            self._probe["watch"](0)
            self._features = frozenset(str(self._probe["cpu_flags"]()).split())
            machine = str(self._probe["cpu_model"]()).strip()
        except Exception as error:  # tvm's many kinds
            raise TuningError(f"{host}:{port} cannot be reached: {reason(error)}") from error
        self._session = session
        return {"machine": machine}

    @_guarded
    def prepare(self, workload: Workload, mask: Mask) -> dict[str, Any]:
        """Send the operands of a workload, and NumPy's result."""
        self._inputs, self._ends = {}, math.inf
        self._shape = tuple(int(dim) for dim in workload.out_shape) or (1,)
        problem = Problem(workload, mask)
        arrays = {
            "cond": problem.cond.view(np.uint8),
            "checked_cond": problem.checked_cond.view(np.uint8),
            "then": bits(problem.then),
            "else_": bits(problem.else_),
            "expected": problem.expected,
        }
        cpu, expected = self._session.cpu(), problem.expected
        self._inputs = {name: runtime.tensor(array, device=cpu) for name, array in arrays.items()}
        self._inputs["out"] = runtime.empty(expected.shape, str(expected.dtype), cpu)
        return {}

    @_guarded
    def measure(self, paths: Sequence[Path], rounds: int | None, limit: float) -> dict[str, Any]:
        """Check libraries, and time those that are right: in turns, or one alone."""
        self._ends = time.monotonic() + limit
        self._probe["watch"](math.ceil(limit))
        begun = self._load()
        results: list[dict[str, Any]] = []
        turns: list[tuple[Callable[[int, int], list[float]], float, list[float]]] = []
        for path in paths:
            try:
                timer = self._timer(self._checked(path))
                seconds: list[float] = []
                turns.append((timer, min(timer(1, _ESTIMATES)), seconds))
                results.append({"seconds": seconds})
            except SelectError as error:
                results.append(_failure(error))
        for _ in range(rounds or 1):
            for timer, once, seconds in turns:
                timer(math.ceil(WARM_UP / once), 1)
                repeats = math.ceil((SHORTEST_TURN if rounds else SHORTEST_SAMPLE) / once)
                samples = 1
                while not rounds and not enough(samples, samples * repeats * once):
                    samples += 1
                seconds.extend(timer(repeats, samples))
        self._probe["watch"](0)
        return {"results": results, "load": self._load().since(begun)}

    def _load(self) -> Load:
        """The load of the server up to now; its session's process measures."""
        seconds, used, own, cpus, *limits = str(self._probe["load"]()).split("\n")
        return Load.read(float(seconds), float(used), float(own), int(cpus), limits)

    def _checked(self, path: Path) -> tuple[Any, str]:
        """Load a library and check its result; returns the module and its function's name."""
        manifest = stored.read(path).manifest
        missing = sorted(set(manifest.target["cpu_features"]) - self._features)
        if missing:
            raise TuningError(
                f"the server's CPU lacks {', '.join(missing)}, which target "
                f"{manifest.target['name']} needs; expected the target of the servers' own CPU, or "
                "a level such as x86-64-v3"
            )
        name = f"{next(self._numbers)}.so"  # a path that was loaded once would not be loaded again
        self._session.upload(str(path), name)
        module = self._session.load_module(name)
        self._session.remove(name)
        symbol = f"{manifest.kernels[0].workload.name}__bits"
        given = self._inputs
        self._probe["fill"](given["out"], FILL)
        module[symbol](given["checked_cond"], given["then"], given["else_"], given["out"])
        at = int(self._probe["compare"](given["out"], given["expected"]))
        if at >= 0:
            workload = manifest.kernels[0].workload
            index = np.unravel_index(at // workload.element.width, self._shape)
            place = ",".join(str(int(i)) for i in index)
            raise WrongBitsError(f"computed wrong bits: out[{place}] is not what NumPy selects")
        return module, symbol

    def _timer(self, checked: tuple[Any, str]) -> Callable[[int, int], list[float]]:
        """A function ``(calls per sample, samples)`` that returns seconds per call, by sample."""
        module, symbol = checked
        given = self._inputs

        def run(number: int, repeat: int) -> list[float]:
            evaluator = module.time_evaluator(
                symbol, self._session.cpu(), number=number, repeat=repeat
            )
            results = evaluator(given["cond"], given["then"], given["else_"], given["out"]).results
            return [max(float(seconds), 1e-9) for seconds in results]

        return run


def _failure(error: Exception) -> dict[str, Any]:
    """A failure, and whether the candidate may have overwritten the operands."""
    return {"failure": reason(error), "tainted": isinstance(error, WrongBitsError)}
