"""Measures what tuning is worth: tuned kernels beside default ones, taking turns on one memory.

``python benchmarks/tuned.py [FOLDER]`` on an idle machine, after ``te-select tune --suite default``
has written FOLDER (``tuning_logs`` by default). First come the workloads of the bench's suite, each
with the record of its own, then workloads that were never tuned and take the nearest record.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import te_select
from te_select import Workload
from te_select.bench.operands import Mask, make_operands
from te_select.bench.rounds import take_turns
from te_select.bench.suite import DEFAULT

ROUNDS = 25


def _flat(n: int, dtype: str = "float32") -> Workload:
    return Workload((n,), (n,), (n,), dtype)


NEVER_TUNED = (
    _flat(100),
    _flat(2000),
    _flat(90_000),
    _flat(1_500_000),
    _flat(12_000_000),
    _flat((1 << 25) + 3),
    _flat(1 << 26, "int8"),
    _flat(3 << 22, "bfloat16"),
    _flat(3 << 21, "int64"),
    Workload((1, 1, 768, 768), (4, 12, 768, 768), ()),
    Workload((1, 1, 1024, 1024), (2, 16, 1024, 1024), (), "float16"),
    Workload((2, 1, 1, 1024), (2, 16, 1024, 1024), ()),
    Workload((8, 1, 512, 512), (8, 8, 512, 512), ()),
    Workload((3, 1000, 1), (3, 1000, 1000), (3, 1000, 1000)),
    Workload((700_000, 1), (700_000, 3), (700_000, 3)),
    Workload((32, 56, 56, 1), (32, 56, 56, 32), (32,)),
    Workload((3000, 3000), (3000, 1), (1, 3000)),
    Workload((16, 512, 1), (16, 512, 1024), ()),
    Workload((2048, 1), (2048, 1024), (1024,)),
    Workload((6, 1, 1), (6, 512, 600), (1, 512, 600)),
)


def compare(workloads: Iterable[tuple[str, Workload]], logs: Path) -> None:
    """Print how many times as fast as the default each workload's kernel is."""
    ratios = []
    for name, workload in workloads:
        tuned = te_select.compile(workload, tuning_logs=logs)
        default = te_select.compile(workload, tuning_logs=False)
        ratio = 1.0 if tuned.config == default.config else _ratio(workload, tuned, default)
        ratios.append(ratio)
        print(f"{ratio:6.3f}  {name}  {tuned.origin}", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{mean:6.3f}  geometric mean; the least {min(ratios):.3f}\n")


def _ratio(workload: Workload, tuned: te_select.Kernel, default: te_select.Kernel) -> float:
    operands = make_operands(workload, Mask(), 0)

    def bound(kernel: te_select.Kernel) -> Callable[[], object]:
        cond, then, else_, out = operands.cond, operands.then, operands.else_, operands.out
        return lambda: kernel(cond, then, else_, out=out)

    turns = take_turns({"tuned": bound(tuned), "default": bound(default)}, ROUNDS)
    return turns["tuned"].ratio(turns["default"])


def main() -> int:
    """Print both tables."""
    logs = Path(sys.argv[1] if len(sys.argv) > 1 else "tuning_logs")
    print("times as fast as the default: tuned")
    compare(((entry.name, entry.workload) for entry in DEFAULT), logs)
    print("times as fast as the default: never tuned, the nearest record")
    compare(((workload.name, workload) for workload in NEVER_TUNED), logs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
