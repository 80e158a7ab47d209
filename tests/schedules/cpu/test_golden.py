"""The CPU schedule by example: the definition before, and what is scheduled after.

Each file in ``golden/`` shows one pattern. ``pytest tests/schedules/cpu/test_golden.py
--update-golden`` writes them anew, to be read in the diff of the change that made them differ.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from te_select import Workload
from te_select.compiler import schedule
from te_select.machines.targets import resolve
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition

HERE = Path(__file__).parent / "golden"
_SAID = re.compile(r"# from|\s+T\.(reads|writes|func_attr)|\w+ = TypeVar|\s+# with")
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
        readable(definition(workload).script()),
    ]
    for variant, func in scheduled.functions.items():
        calls = f"calls of the variant {variant.name!r}" if variant.applies else "all other calls"
        parts += [f"# ---- after, for {calls}\n# {variant.config}", readable(func.script())]
    return "\n\n".join(parts) + "\n"


def readable(script: str) -> str:
    """TVMScript without redundant parts: imports, reads and writes, types of ints."""
    kept = (line for line in script.splitlines() if not _SAID.match(line))
    text = re.sub(r"T\.int64\((\d+)\)", r"\1", "\n".join(kept))
    return re.sub(r'"te_select\.(knob\.\w+|pattern)": [^,}]+, ', "", text).strip()


@pytest.mark.parametrize("name", PATTERNS)
def test_scheduled_definition_is_the_golden_one(name: str, update_golden: bool) -> None:
    path = HERE / f"{name}.tir"
    text = before_and_after(PATTERNS[name])
    if update_golden:
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} differs; see --update-golden"


def test_every_golden_file_has_its_pattern() -> None:
    assert {path.stem for path in HERE.glob("*.tir")} == set(PATTERNS)
