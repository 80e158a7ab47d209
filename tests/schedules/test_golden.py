"""The schedules by example: the definition before, what is scheduled after, and CUDA's kernel.

Each file in ``cpu/golden/`` and ``cuda/golden/`` shows one pattern. The templates that every CUDA
kernel calls are not repeated: they are ``schedules/cuda/span.cuh``. Nor are CUDA's definitions,
which are those of the CPU's files.
"""

from pathlib import Path

import pytest

from te_select import Workload
from te_select.backends.cuda.lowering import lower
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from tests.support import alike, golden, shapes

HERE = Path(__file__).parent
BOTH = {
    "cond_per_row": Workload(*shapes("4096,1 4096,1024 1024")),
    "mask_over_heads": Workload(*shapes("4,1,128,128 4,12,128,128 ()")),
    "rows_of_three": Workload((1 << 20, 1), (1 << 20, 3), (1 << 20, 3)),
}
OF_CPU = BOTH | {
    "all_move": alike(1024, 4099),
    "rows_of_named_length": Workload(*shapes("n,1 n,m n,m")),
}
OF_CUDA = BOTH | {
    "all_move": alike(4096, 4099),
    "odd_rows": Workload(*shapes("n,1 n,1021 1021"), "bfloat16"),
}


def on_the_cpu(workload):
    """The definition, and the functions that the default schedule makes of it."""
    target = "x86-64-v3"
    scheduled = schedule(workload, resolve(target), tuning_logs=False)
    parts = [
        f"# {workload}\n# access pattern: {access_pattern(workload)}\n# target: {target}",
        "# ---- before: the definition",
        golden.readable(definition(workload).script()),
    ]
    for variant, func in scheduled.functions.items():
        calls = f"calls of the variant {variant.name!r}" if variant.applies else "all other calls"
        parts += [f"# ---- after, for {calls}\n# {variant.config}", golden.readable(func.script())]
    return "\n\n".join(parts) + "\n"


def on_cuda(workload):
    """The function that the default schedule makes, and the kernel."""
    target = "cuda:sm_90"
    pattern = access_pattern(workload)
    made = schedule(workload, resolve(target), tuning_logs=False)
    ((variant, func),) = made.functions.items()
    lowered = lower(func, "kernel", workload.dim_names, pattern)
    parts = [
        f"# {workload}\n# access pattern: {pattern}\n# target: {target}\n# {variant.config}",
        "# ---- the scheduled definition",
        golden.readable(func.script()),
        f"# ---- the kernel\n# threads of a block: {lowered.threads}\n# blocks: {lowered.blocks}",
        lowered.kernel.strip(),
    ]
    return "\n\n".join(parts) + "\n"


FILES = {f"cpu/golden/{name}.tir": (on_the_cpu, each) for name, each in OF_CPU.items()}
FILES |= {f"cuda/golden/{name}.txt": (on_cuda, each) for name, each in OF_CUDA.items()}


@pytest.mark.parametrize("name", FILES)
def test_schedule_is_the_golden_one(name, update_golden):
    shown, workload = FILES[name]
    golden.check(HERE / name, shown(workload), update_golden)


def test_every_golden_file_has_its_pattern():
    assert {str(path.relative_to(HERE)) for path in HERE.glob("*/golden/*")} == set(FILES)
