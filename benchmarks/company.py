"""Measures calls of where(out=) between operations of a library that has threads of its own.

Run ``python benchmarks/company.py`` on an idle machine. Each process makes operations and calls in
turns. The programs take turns as well: as it is; silent, with variables of the libraries with which
their threads sleep at once; and with ``--before PYTHON``, another installation of te-select. The
figures are medians of ``--processes`` processes each, in microseconds.

``--between blas`` takes products of matrices of NumPy in the place of torch's additions, and
``--between nothing`` none. ``--preload LIBRARY`` lets torch run on another runtime of OpenMP.
``--training`` measures steps of a training loop, with te_select.where and with torch.where.
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

SIZES = tuple(1 << k for k in (18, 20, 22, 24))
MOVED = 1 << 29  # bytes of each measurement, about
MATRIX = 256  # rows of the matrices of NumPy
BATCH, FEATURES, STEPS, RATE, SLOPE = 1024, 256, 60, 1e-3, 0.1
SILENT = {"GOMP_SPINCOUNT": "0", "KMP_BLOCKTIME": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}


def times(call: Callable[[], object], between: Callable[[], object], rounds: int) -> list[float]:
    """Seconds of a call and of what comes between, medians."""
    both = []
    for _ in range(rounds):
        start = time.perf_counter()
        between()
        middle = time.perf_counter()
        call()
        both.append((time.perf_counter() - middle, middle - start))
    return [statistics.median(column) for column in zip(*both[rounds // 4 :], strict=True)]


def operation(library: str, size: int) -> Callable[[], object]:
    """What comes between two calls."""
    import numpy as np  # noqa: PLC0415 - the parent needs none of these

    if library == "nothing":
        return lambda: None
    if library == "blas":
        a, b, c = (np.ones((MATRIX, MATRIX), np.float32) for _ in range(3))
        return functools.partial(np.matmul, a, b, out=c)
    import torch  # noqa: PLC0415

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    x, y, z = (torch.rand(size) for _ in range(3))
    return functools.partial(torch.add, x, y, out=z)


def child(library: str, addition: int, sizes: list[int]) -> None:
    """Print a line for each size: elements, microseconds of a call, of an operation, and how."""
    import numpy as np  # noqa: PLC0415

    import te_select  # noqa: PLC0415

    rng = np.random.default_rng(0)
    for size in sizes:
        cond = rng.random(size) < 0.5  # noqa: PLR2004 - half
        x, y, out = (rng.random(size, np.float32) for _ in range(3))
        between = operation(library, addition or size)
        call = functools.partial(te_select.where, cond, x, y, out=out)
        rounds = max(40, min(4000, MOVED // (13 * size)))
        us, other = (1e6 * each for each in times(call, between, rounds))
        print(size, us, other, str(te_select.where.explain(cond, x, y, out)).split("; ")[1])


def train() -> None:
    """Print the milliseconds of a step of two layers, with either where() as the activation."""
    import torch  # noqa: PLC0415

    import te_select  # noqa: PLC0415
    from te_select.timing.rounds import take_turns  # noqa: PLC0415

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    x, y = torch.randn(2, BATCH, FEATURES)
    layers = [torch.randn(FEATURES, FEATURES, requires_grad=True) for _ in range(2)]

    def step(where: Any) -> None:
        hidden = x @ layers[0]
        loss = ((where(hidden > 0, hidden, SLOPE * hidden) @ layers[1] - y) ** 2).mean()
        grads = torch.autograd.grad(loss, layers)
        with torch.no_grad():
            for layer, grad in zip(layers, grads, strict=True):
                layer.sub_(RATE * where(grad.abs() < 1, grad, 0.0))

    functions = {"torch.where": torch.where, "te_select.where": te_select.where}
    steps = {name: functools.partial(step, each) for name, each in functions.items()}
    found = take_turns(steps, STEPS)
    for name, timing in found.items():
        print(f"{name:16}{timing.median * 1e3:8.2f} ms a step")


def main() -> int:
    """Print a row for each size and program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--between", choices=["torch", "blas", "nothing"], default="torch")
    parser.add_argument(
        "--addition", type=int, default=1 << 20, help="elements; 0: as the call has"
    )
    parser.add_argument("--sizes", type=lambda text: [1 << int(k) for k in text.split(",")])
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--before", help="the Python of another installation")
    parser.add_argument("--preload", help="another runtime of OpenMP, such as libiomp5.so")
    parser.add_argument("--training", action="store_true")
    options = parser.parse_args()
    if options.training:
        train()
        return 0
    if options.child:
        child(options.between, options.addition, options.sizes or [*SIZES])
        return 0
    programs = {"as it is": (sys.executable, {}), "silent": (sys.executable, SILENT)}
    if options.before:
        programs |= {"before": (options.before, {}), "before, silent": (options.before, SILENT)}
    if options.between == "nothing":
        programs = {name: each for name, each in programs.items() if "silent" not in name}
    preload = {"LD_PRELOAD": options.preload} if options.preload else {}
    rows: dict[tuple[str, str], list[list[str]]] = {}
    for _ in range(options.processes):
        for name, (python, variables) in programs.items():
            command = [python, __file__, "--child", *sys.argv[1:]]
            done = subprocess.run(
                command,
                env={**os.environ, **preload, **variables},
                capture_output=True,
                text=True,
                check=True,
            )
            for line in done.stdout.splitlines():
                size, *figures = line.split(maxsplit=3)
                rows.setdefault((size, name), []).append(figures)
    print(f"{'elements':>10} {'':16}{'where, us':>10}{'between':>10}  threads of the last process")
    for (size, name), found in rows.items():
        us, between = (statistics.median(float(each[k]) for each in found) for k in (0, 1))
        print(f"{size:>10} {name:16}{us:10.1f}{between:10.1f}  {found[-1][2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
