"""Measures what the README says of speed: kernels beside NumPy, and odd sizes beside round ones.

Run ``python benchmarks/x86.py`` on an idle machine. Everything that is compared takes turns in one
run; each figure is a median over the rounds. Outputs are reused: a new one costs page faults.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import te_select
from te_select.access import access_pattern
from te_select.bench.rounds import take_turns
from te_select.bench.suite import BASELINES
from te_select.broadcast import format_shape

ROUNDS = 15
LINE = 64  # bytes
HALF = np.float32(0.5)


PLAIN_TVM = {
    "contiguous-32M": 130 / 10.3,
    "attention-causal": 182 / 9.6,
    "attention-padding": 38 / 9.3,
    "rows-4096": 2.62 / 0.85,
    "inner-3": 7.5 / 0.80,
    "channels-32": 6.1 / 1.46,
    "outer-product": 41 / 1.93,
    "odd-4099x1021": 14.4 / 3.8,
    "rows-8": 1.04 / 0.14,
}
"""How far ahead of NumPy a plain TVM schedule is.

Measured with an unfused split, parallel and vectorize on a 2-core Zen 5.
"""


def aligned(shape: tuple[Any, ...]) -> Any:
    """A float32 array on a cache line's boundary, as torch, JAX and ONNX Runtime allocate them."""
    count = math.prod(shape)
    memory = np.empty(4 * count + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + 4 * count].view(np.float32).reshape(shape)


class Case:
    """A kernel with random operands, half of cond true."""

    def __init__(self, workload: te_select.Workload, kernel: te_select.Kernel) -> None:
        rng = np.random.default_rng(0)
        shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
        cond_shape, *branches = (tuple(int(dim) for dim in shape) for shape in shapes)
        self.workload = workload
        self.kernel = kernel
        self.cond = np.asarray(rng.random(cond_shape, np.float32) < HALF)
        self.then, self.else_ = (aligned(shape) for shape in branches)
        for side in (self.then, self.else_):
            side[...] = rng.random(side.shape, np.float32)
        self.out = aligned(workload.out_shape)
        want = np.where(self.cond, self.then, self.else_)
        np.testing.assert_array_equal(self.call().view(np.uint32), want.view(np.uint32))

    def call(self) -> Any:
        """Run the kernel into the reused output."""
        return self.kernel(self.cond, self.then, self.else_, out=self.out)

    def numpy(self) -> Any:
        """Run numpy.where, which allocates."""
        return np.where(self.cond, self.then, self.else_)


def beside_numpy() -> None:
    """Each row: milliseconds, GB/s, and how many times as fast as NumPy."""
    print(
        "cond / then / else                                      ms    GB/s  NumPy ms  times  plain"
    )
    for entry in BASELINES:
        workload = entry.workload
        case = Case(workload, te_select.compile(workload))
        timed = take_turns({"ours": case.call, "numpy": case.numpy}, ROUNDS)
        ours = timed["ours"]
        shapes = (workload.cond_shape, workload.then_shape, workload.else_shape)
        rate = access_pattern(workload).bytes_moved() / ours.median / 1e9
        print(
            f"{' / '.join(map(format_shape, shapes)):52}"
            f"{ours.median * 1e3:8.3f}{rate:8.1f}{timed['numpy'].median * 1e3:10.2f}"
            f"{timed['numpy'].median / ours.median:7.1f}{PLAIN_TVM[entry.name]:7.1f}"
        )


def per_element(title: str, odd: tuple[int, ...], even: tuple[int, ...]) -> None:
    """How fast an odd size is per element, beside a round one."""
    cases = {}
    for name, shape in (("odd", odd), ("round", even)):
        workload = te_select.Workload(shape, shape, shape)
        cases[name] = Case(workload, te_select.compile(workload))
    timed = take_turns({name: case.call for name, case in cases.items()}, 2 * ROUNDS + 1)
    scale = cases["odd"].out.size / cases["round"].out.size
    print(f"{title}: {timed['odd'].ratio(timed['round']) * scale:.3f} of the round size's speed")


def named_beside_literal() -> None:
    """How fast a kernel of a named size is, beside that of the very size."""
    named = te_select.compile(te_select.Workload(["n"], ["n"], ["n"]))
    for n in (1000, (1 << 20) + 1, (1 << 24) + 7):
        workload = te_select.Workload((n,), (n,), (n,))
        cases = {
            "named": Case(workload, named),
            "literal": Case(workload, te_select.compile(workload)),
        }
        # One set of operands for both, so that they differ by the kernel alone.
        cases["named"].__dict__.update(cases["literal"].__dict__ | {"kernel": named})
        timed = take_turns({name: case.call for name, case in cases.items()}, 4 * ROUNDS + 1)
        print(
            f"named size {n}: {timed['named'].ratio(timed['literal']):.3f} of the literal's speed"
        )


def overheads() -> None:
    """Time to compile, to load, and to call on little."""
    workload = te_select.Workload((1024,), (1024,), (1024,))
    te_select.compile(workload)  # imports and builds what is needed once

    def median_ms(call: Callable[[], object]) -> float:
        seconds = []
        for _ in range(11):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
        return sorted(seconds)[5] * 1e3

    print(f"compile, link included: {median_ms(lambda: te_select.compile(workload)):.0f} ms")
    kernel = te_select.compile(workload)
    print(f"load: {median_ms(lambda: te_select.load(kernel.path)):.2f} ms")
    case = Case(workload, kernel)
    calls = take_turns(
        {
            "allocating": lambda: kernel(case.cond, case.then, case.else_),
            "out=": case.call,
            "numpy.where": case.numpy,
        },
        51,
    )
    for name, timing in calls.items():
        print(f"1024 elements, {name}: {timing.median * 1e6:.2f} us")


def main() -> int:
    """Print every figure."""
    beside_numpy()
    per_element("2^24 + 7 elements", ((1 << 24) + 7,), (1 << 24,))
    per_element("[4099,1021]", (4099, 1021), (4096, 1024))
    named_beside_literal()
    overheads()
    return 0


if __name__ == "__main__":
    sys.exit(main())
