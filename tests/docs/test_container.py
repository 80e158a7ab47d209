"""The steps of the Dockerfile of docs/shipping.md, in an empty environment."""

from __future__ import annotations

from pathlib import Path

import pytest

import te_select
from tests.support import fresh
from tests.support.documents import blocks

LEVELS = "x86-64-v2,x86-64-v3,x86-64-v4"
RUNTIME = "pip install numpy 'apache-tvm-ffi>=0.1.14,<0.1.15'"
CALL = """
import sys
import numpy as np
import te_select

kernel = te_select.load("mask.so")
mask, scores = np.tri(128, dtype=bool)[None, None], np.ones((4, 12, 128, 128), np.float32)
assert (kernel(mask, scores, -1e9) == np.where(mask, scores, np.float32(-1e9))).all()
assert "tvm" not in sys.modules
"""


def test_dockerfile_takes_these_steps() -> None:
    dockerfile = next(b for b in blocks("docs/shipping.md") if b.language == "dockerfile").text
    for step in (LEVELS, RUNTIME, "pip wheel --no-deps", "pip install --no-deps"):
        assert step in dockerfile


@pytest.mark.long
def test_library_runs_beside_numpy_and_tvm_ffi_alone(tmp_path: Path) -> None:
    environment = fresh.environment_of(tmp_path / "home")
    workload = te_select.Workload((1, 1, 128, 128), (4, 12, 128, 128), ())
    te_select.export([workload], tmp_path / "mask.so", LEVELS)
    script = f"""
        "$PYTHON" -m venv empty
        source empty/bin/activate
        pip wheel --quiet --no-deps --wheel-dir wheels {fresh.clone_to(tmp_path)}
        {RUNTIME}
        pip install --no-deps wheels/te_select*.whl
        python - <<'END'\n{CALL}\nEND
        ! python -c 'import tvm'
    """
    status, output = fresh.shell(script, tmp_path, environment)
    assert status == 0, output
