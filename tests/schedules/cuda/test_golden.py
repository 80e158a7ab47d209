"""The CUDA schedule by example: what is scheduled, and the kernel that it becomes.

Each file in ``golden/`` shows one pattern. The templates that every kernel calls are not repeated:
they are ``schedules/cuda/span.cuh``. The definitions are those of the CPU's golden files.
"""

from pathlib import Path

import pytest

from te_select import Workload
from te_select.backends.cuda.lowering import lower
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from tests.support import golden

HERE = Path(__file__).parent / "golden"
TARGET = "cuda:sm_90"
PATTERNS = {
    "all_move": Workload((4096, 4099), (4096, 4099), (4096, 4099)),
    "cond_per_row": Workload((4096, 1), (4096, 1024), (1024,)),
    "mask_over_heads": Workload((4, 1, 128, 128), (4, 12, 128, 128), ()),
    "rows_of_three": Workload((1 << 20, 1), (1 << 20, 3), (1 << 20, 3)),
    "odd_rows": Workload(("n", 1), ("n", 1021), (1021,), "bfloat16"),
}


def scheduled_and_lowered(workload: Workload) -> str:
    """The function that the default schedule makes, and the kernel."""
    made = schedule(workload, resolve(TARGET), tuning_logs=False)
    pattern = access_pattern(workload)
    ((variant, func),) = made.functions.items()
    lowered = lower(func, "kernel", workload.dim_names, pattern)
    parts = [
        f"# {workload}\n# access pattern: {pattern}\n# target: {TARGET}\n# {variant.config}",
        "# ---- the scheduled definition",
        golden.readable(func.script()),
        f"# ---- the kernel\n# threads of a block: {lowered.threads}\n# blocks: {lowered.blocks}",
        lowered.kernel.strip(),
    ]
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("name", PATTERNS)
def test_kernel_is_the_golden_one(name: str, update_golden: bool) -> None:
    golden.check(HERE / f"{name}.txt", scheduled_and_lowered(PATTERNS[name]), update_golden)


def test_every_golden_file_has_its_pattern() -> None:
    assert {path.stem for path in HERE.glob("*.txt")} == set(PATTERNS)
