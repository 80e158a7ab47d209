"""Measures what tuning gains: tuned kernels beside others, taking turns on one memory.

Run ``python benchmarks/tuned.py --tuning-logs build/records`` on an idle machine, after ``make
records``. First come the workloads of the bench's suite, each with its own record; then workloads
of odd sizes with masks in blocks, which are tuned here, and workloads that were never tuned and
take the nearest record. All are compared with the default config. A ratio below 0.98 is measured
again. Beside each stands what the default and the tuned kernel reach of the roof.
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


ODD = (
    (_flat(1021), Mask(90, 64)),
    (_flat(99_991), Mask(50, 4096)),
    (_flat(1_000_003), Mask(50, 65_536)),
    (_flat(5_000_011), Mask(10, 16_384)),
    (_flat(20_000_003), Mask(50, 100_000)),
    (_flat(3_000_017, "float16"), Mask(80, 1000)),
    (_flat(7_000_003, "uint8"), Mask(50, 10_000)),
    (_flat(1_500_007, "float64"), Mask(5, 500)),
    (_flat(700_001, "complex128"), Mask(50, 4096)),
    (Workload((1, 1, 777, 777), (4, 12, 777, 777), ()), Mask(50, 777)),
    (Workload((1, 1, 500, 1500), (2, 8, 500, 1500), (), "float16"), Mask(30, 1500)),
    (Workload((7, 1, 1, 999), (7, 11, 999, 999), ()), Mask(70, 300)),
    (Workload((5, 1, 333, 333), (5, 9, 333, 333), ()), Mask(50, 333)),
    (Workload((3, 997, 1), (3, 997, 1009), (3, 997, 1009)), Mask(50, 100)),
    (Workload((333_337, 1), (333_337, 3), (333_337, 3)), Mask(50, 1000)),
    (Workload((100_003, 1), (100_003, 47), (100_003, 47)), Mask(50, 100)),
    (Workload((65_537, 1), (65_537, 63), (63,)), Mask(90, 256)),
    (Workload((2111, 1), (2111, 1777), (1777,)), Mask(50, 10)),
    (Workload((1733, 1747), (1733, 1), (1, 1747)), Mask(50, 1747)),
    (Workload((11, 1, 1), (11, 301, 401), (1, 301, 401)), Mask(50, 2)),
)


def against_default(
    workloads: Iterable[tuple[str, Workload, Mask]], logs: Path, *, tune: bool = False
) -> None:
    """Print the speed-up of each workload's kernel over the default."""
    ratios = []
    print(" times  default, tuned of the roof")
    for name, workload, mask in workloads:
        if tune:
            te_select.tune(
                workload, tuning_logs=logs, density=mask.density, block=mask.block, trials=32
            )
        tuned = te_select.compile(workload, tuning_logs=logs)
        default = te_select.compile(workload, tuning_logs=False)
        operands = make_operands(workload, mask, 0)
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
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tuning-logs", type=Path, default=Path("tuning_logs"), help="the folder")
    parser.add_argument("--only", default="*", help="a glob: only these of the suite")
    given = parser.parse_args()
    logs: Path = given.tuning_logs
    print("speed-up over the default: tuned")
    chosen = (each for each in DEFAULT if fnmatch.fnmatchcase(each.name, given.only))
    against_default(((each.name, each.workload, Mask()) for each in chosen), logs)
    if given.only == "*":
        print("speed-up over the default: odd sizes, masks in blocks, tuned now")
        odd = ((f"{workload} {mask.described()}", workload, mask) for workload, mask in ODD)
        against_default(odd, logs.with_name(f"{logs.name}-odd"), tune=True)
        print("speed-up over the default: never tuned, the nearest record")
        against_default(((each.name, each, Mask()) for each in NEVER_TUNED), logs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
