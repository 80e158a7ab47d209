"""The CPU schedule by example: the definition before, and what is scheduled after.

Each file in ``golden/`` shows one pattern.
"""

from pathlib import Path

import pytest

from te_select import Workload
from te_select.backends.targets import resolve
from te_select.compiler.scheduling import schedule
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from tests.support import golden

HERE = Path(__file__).parent / "golden"
TARGET = "x86-64-v3"
PATTERNS = {
    "all_move": Workload((1024, 4099), (1024, 4099), (1024, 4099)),
    "cond_per_row": Workload((4096, 1), (4096, 1024), (1024,)),
    "mask_over_heads": Workload((4, 1, 128, 128), (4, 12, 128, 128), ()),
    "rows_of_three": Workload((1 << 20, 1), (1 << 20, 3), (1 << 20, 3)),
    "rows_of_named_length": Workload(("n", 1), ("n", "m"), ("n", "m")),
}


def before_and_after(workload: Workload) -> str:
    """The definition, and the functions that the default schedule makes of it."""
    scheduled = schedule(workload, resolve(TARGET), tuning_logs=False)
    parts = [
        f"# {workload}\n# access pattern: {access_pattern(workload)}\n# target: {TARGET}",
        "# ---- before: the definition",
        golden.readable(definition(workload).script()),
    ]
    for variant, func in scheduled.functions.items():
        calls = f"calls of the variant {variant.name!r}" if variant.applies else "all other calls"
        parts += [f"# ---- after, for {calls}\n# {variant.config}", golden.readable(func.script())]
    return "\n\n".join(parts) + "\n"


@pytest.mark.parametrize("name", PATTERNS)
def test_scheduled_definition_is_the_golden_one(name: str, update_golden: bool) -> None:
    golden.check(HERE / f"{name}.tir", before_and_after(PATTERNS[name]), update_golden)


def test_every_golden_file_has_its_pattern() -> None:
    assert {path.stem for path in HERE.glob("*.tir")} == set(PATTERNS)
