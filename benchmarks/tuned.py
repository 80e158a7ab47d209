"""Measures what tuning gains: tuned kernels beside default ones, taking turns on one memory.

Run ``python benchmarks/tuned.py --tuning-logs build/records`` on an idle machine, after ``make
records``. The workloads are those of the bench's suite. A ratio below 0.98 is measured again.
Beside each stands what the default and the tuned kernel reach of the roof.
"""

import argparse
import fnmatch
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import te_select
from te_select import Workload
from te_select.bench.peers import Call
from te_select.bench.stage import calls_of
from te_select.bench.suite import DEFAULT
from te_select.operator.access import access_pattern
from te_select.timing.inputs import Mask, Operands, make_operands
from te_select.timing.roof import bandwidth
from te_select.timing.rounds import take_turns

ROUNDS = 25
LEAST = 0.98  # a smaller ratio must be seen twice


def against_default(workloads: Iterable[tuple[str, Workload]], logs: Path) -> None:
    """Print the speed-up of each workload's kernel over the default."""
    ratios = []
    print(" times  default, tuned of the roof")
    for name, workload in workloads:
        tuned = te_select.compile(workload, tuning_logs=logs)
        default = te_select.compile(workload, tuning_logs=False)
        operands = make_operands(workload, Mask(), 0)
        calls = {"tuned": _call(tuned, operands), "other": _call(default, operands)}
        turns = take_turns(calls, ROUNDS)
        ratio = 1.0 if tuned.config == default.config else turns["tuned"].ratio(turns["other"])
        if ratio < LEAST:
            again = take_turns(calls, ROUNDS)
            ratio = max(ratio, again["tuned"].ratio(again["other"]))
        moved = access_pattern(workload).bytes_moved()
        roof = bandwidth(moved) or math.nan
        default_share, share = (moved / turns[each].median / roof for each in ("other", "tuned"))
        ratios.append(ratio)
        print(
            f"{ratio:6.3f}  {default_share:5.2f} {share:5.2f}  {name}  {tuned.origin}", flush=True
        )
    _summarize(ratios)


def _call(kernel: te_select.Kernel, operands: Operands) -> Call:
    return calls_of(kernel, [operands])[0]


def _summarize(ratios: Sequence[float]) -> None:
    mean = statistics.geometric_mean(ratios) if ratios else math.nan
    print(f"{mean:6.3f}  geometric mean; the least {min(ratios, default=math.nan):.3f}\n")


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tuning-logs", type=Path, default=Path("tuning_logs"), help="the folder")
    parser.add_argument("--only", default="*", help="a glob: only these of the suite")
    given = parser.parse_args()
    print("speed-up over the default: tuned")
    chosen = (each for each in DEFAULT if fnmatch.fnmatchcase(each.name, given.only))
    against_default(((each.name, each.workload) for each in chosen), given.tuning_logs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
