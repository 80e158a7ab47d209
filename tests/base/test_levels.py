"""A level of x86-64 is one row, from which everything follows that names levels."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from te_select.base.levels import ABOVE_BASELINE, NAMES
from tests.support import ROOT
from tests.support.edited_copy import run_with
from tests.support.machines import on_x86_64

pytestmark = on_x86_64
TOY = 'Level("avx10", vector_bytes=32, unroll=2, features={"gfni": "gfni"}, '
TOY += 'needs=frozenset({"gfni", "avx512bw"})),\n'
ASK = """
import json, pathlib
import te_select
from te_select import Workload
from te_select.base import kinds, levels
from te_select.errors import TargetError
from te_select.backends.targets import resolve
assert te_select.__file__.startswith(str(pathlib.Path.cwd()))
try:
    resolve("x86-64-v2,v9")
except TargetError as error:
    refusal = str(error)
w = Workload((64,), (64,), (64,))
te_select.export([w], "lib.so", "avx10,x86-64-v3", False)
manifest = json.loads(pathlib.Path("lib.json").read_text())
print(json.dumps({
    "targets": kinds.KINDS["cpu"].targets,
    "refusal": refusal,
    "wheel": levels.ABOVE_BASELINE,
    "manifest": manifest,
    "shares": resolve("avx10").model,
}))
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What te_select says with a row for a toy level, above the others."""
    edits = {"te_select/base/levels.py": (TOY, ")\nNAMES = ")}
    return json.loads(run_with(edits, tmp_path_factory.mktemp("toy"), ASK))


def test_texts_and_checks_name_the_level(said):
    names = ", ".join((*NAMES, "avx10"))
    assert f"{names}, several of these" in said["targets"]
    assert f"a list is of {names}, each" in said["refusal"]
    assert said["wheel"] == f"{ABOVE_BASELINE},avx10"


def test_level_has_its_features_and_vectors(said):
    target, (kernel,) = said["manifest"]["target"], said["manifest"]["kernels"]
    assert list(target["levels"]) == ["x86-64-v3", "avx10"]
    assert "gfni" in target["levels"]["avx10"]
    assert (kernel["config"]["vector_bytes"], kernel["config"]["unroll"]) == (32, 2)
    assert kernel["levels"]["x86-64-v3"]["config"]["vector_bytes"] == 64


def test_records_of_the_level_are_those_of_many_models(said):
    assert said["shares"] == ""


def test_page_of_targets_lists_the_levels():
    listed = ", ".join(f"`{name}`" for name in NAMES)
    assert f"| {listed} |" in Path(ROOT, "docs/targets.md").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_wheel_brings_kernels_for_the_levels_above_the_baseline():
    words = ["make", "-C", str(ROOT), f"BIN={Path(sys.executable).parent}", "--dry-run", "wheel"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True)
    assert f"where build --target {ABOVE_BASELINE} " in shown.stdout
