"""Load an exported causal mask, verify it against NumPy and time it, without a compiler."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

import te_select

ROUNDS = 21


def medians(*calls: Callable[[], object]) -> list[float]:
    """Milliseconds per call: the median over rounds in which the calls take turns."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(ROUNDS):
        for call, samples in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            samples.append(time.perf_counter() - start)
    return [1e3 * statistics.median(samples) for samples in seconds]


def main(path: str) -> None:
    """Load, verify bit for bit, and time."""
    kernel = te_select.load(path)
    if not isinstance(kernel, te_select.Kernel):
        raise SystemExit(f"{path} holds more than one kernel")
    rng = np.random.default_rng(0)
    cond = np.tril(np.ones((1024, 1024), np.bool_)).reshape(1, 1, 1024, 1024)
    then = rng.standard_normal((1, 12, 1024, 1024), np.float32)
    else_ = np.float32(-np.inf)
    out = np.empty_like(then)
    reference = np.empty_like(then)

    def numpy_into() -> None:
        np.copyto(reference, else_)
        np.copyto(reference, then, where=cond)

    expected = np.where(cond, then, else_).view(np.uint32)
    kernel(cond, then, else_, out=out)
    if not np.array_equal(out.view(np.uint32), expected):
        raise SystemExit("the kernel and NumPy differ")
    if not np.array_equal(kernel(cond, then, else_).view(np.uint32), expected):
        raise SystemExit("the kernel and NumPy differ where the kernel allocates")
    print("verified  bit for bit against NumPy")

    new, numpy_new, into, into_numpy = medians(
        lambda: kernel(cond, then, else_),
        lambda: np.where(cond, then, else_),
        lambda: kernel(cond, then, else_, out=out),
        numpy_into,
    )
    for what, peer, ours, theirs in (
        ("allocating", "np.where", new, numpy_new),
        ("with out= ", "np.copyto twice", into, into_numpy),
    ):
        print(f"{what} {ours:6.2f} ms; {peer} {theirs:6.2f} ms, {theirs / ours:.1f}x the time")

    if "tvm" in sys.modules:
        raise SystemExit("tvm was imported")
    print("imported  tvm: no")


if __name__ == "__main__":
    if len(sys.argv) != len(("program", "library")):
        raise SystemExit("expected the library that `make demo` exports: build/causal_mask.so")
    main(sys.argv[1])
