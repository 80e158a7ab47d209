"""Measures calls of where(out=) between operations of torch.

Run ``python benchmarks/company.py`` on an idle machine. Each process makes additions and calls in
turns. The programs take turns as well: as it is; with ``GOMP_SPINCOUNT=0``, with which torch's
threads sleep at once; and with ``--before PYTHON``, another installation of te-select. The figures
are medians of ``--processes`` processes each, in microseconds.
"""

import argparse
import functools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

SIZES = tuple(1 << k for k in (18, 20, 22, 24))
MOVED = 1 << 29  # bytes of each measurement, about


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


def child(addition: int) -> None:
    """Print a line for each size: elements, microseconds of a call, of an addition, and how."""
    import numpy as np  # noqa: PLC0415 - the parent needs none of these
    import torch  # noqa: PLC0415

    import te_select  # noqa: PLC0415

    torch.set_num_threads(len(os.sched_getaffinity(0)))
    rng = np.random.default_rng(0)
    for size in SIZES:
        cond = rng.random(size) < 0.5  # noqa: PLR2004 - half
        x, y, out = (rng.random(size, np.float32) for _ in range(3))
        a, b, c = (torch.rand(addition or size) for _ in range(3))

        call = functools.partial(te_select.where, cond, x, y, out=out)
        add = functools.partial(torch.add, a, b, out=c)
        rounds = max(40, min(2000, MOVED // (13 * size)))
        us, between = (1e6 * each for each in times(call, add, rounds))
        print(size, us, between, str(te_select.where.explain(cond, x, y, out)).split("; ")[1])


def main() -> int:
    """Print a row for each size and program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--addition", type=int, default=1 << 20, help="elements; 0: as the call has"
    )
    parser.add_argument("--processes", type=int, default=5)
    parser.add_argument("--before", help="the Python of another installation")
    options = parser.parse_args()
    if options.child:
        child(options.addition)
        return 0
    programs = {
        "as it is": (sys.executable, {}),
        "silent": (sys.executable, {"GOMP_SPINCOUNT": "0"}),
    }
    if options.before:
        programs |= {"before": (options.before, {})}
        programs |= {"before, silent": (options.before, {"GOMP_SPINCOUNT": "0"})}
    rows: dict[tuple[str, str], list[list[str]]] = {}
    for _ in range(options.processes):
        for name, (python, variables) in programs.items():
            command = [python, __file__, "--child", f"--addition={options.addition}"]
            done = subprocess.run(
                command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
            )
            for line in done.stdout.splitlines():
                size, *figures = line.split(maxsplit=3)
                rows.setdefault((size, name), []).append(figures)
    print(f"{'elements':>10} {'':16}{'where, us':>10}{'addition':>10}  threads of the last process")
    for (size, name), found in rows.items():
        us, between = (statistics.median(float(each[k]) for each in found) for k in (0, 1))
        print(f"{size:>10} {name:16}{us:10.1f}{between:10.1f}  {found[-1][2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
