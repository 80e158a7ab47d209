"""The steps of the Dockerfile of docs/shipping.md, in an empty environment."""

import re
import sys
from pathlib import Path

import pytest

import te_select
from tests.support import fresh
from tests.support.documents import blocks

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))

LEVELS = "x86-64-v2,x86-64-v3,x86-64-v4"
MADE = "make -C /src wheel DIST=/wheels"
RUNTIME = "pip install /wheels/te_select_runtime-*-cp312-*.whl"
HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
CALL = """
import sys
import numpy as np
import te_select

kernel = te_select.load("mask.so")
mask, scores = np.tri(128, dtype=bool)[None, None], np.ones((4, 12, 128, 128), np.float32)
assert (kernel(mask, scores, -1e9) == np.where(mask, scores, np.float32(-1e9))).all()
assert "tvm" not in sys.modules
"""


def test_no_page_installs_us_by_a_name_that_an_index_may_have():
    """Another's package of that name would be taken, if its version is higher."""
    for path in (*PAGES, ROOT / "Makefile", *(ROOT / "examples").rglob("*.py")):
        installed = re.findall(r"pip install ([^\n`&]*)", path.read_text())
        words = [word.strip("'\"") for line in installed for word in line.split()]
        assert not {"te-select", "te-select-runtime", "te-select-runtime[cli]"} & {*words}, path


def test_dockerfile_takes_these_steps():
    dockerfile = next(b for b in blocks("docs/shipping.md") if b.language == "dockerfile").text
    for step in (LEVELS, MADE, RUNTIME):
        assert step in dockerfile


@pytest.mark.long
def test_library_runs_beside_the_runtime_alone(tmp_path):
    environment = fresh.environment_of(tmp_path / "home")
    workload = te_select.Workload((1, 1, 128, 128), (4, 12, 128, 128), ())
    te_select.export([workload], tmp_path / "mask.so", LEVELS)
    script = f"""
        "$PYTHON" -m venv empty
        source empty/bin/activate
        make -C {fresh.clone_to(tmp_path)} wheel LEVELS=x86-64-v3 DIST={tmp_path}/wheels
        {RUNTIME.replace("/wheels", f"{tmp_path}/wheels").replace("cp312", HERE)}
        python - <<'END'\n{CALL}\nEND
        ! python -c 'import tvm'
    """
    status, output = fresh.shell(script, tmp_path, environment)
    assert status == 0, output
