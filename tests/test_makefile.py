"""The Makefile's help, and what the demo installs."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.programs import output

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make")


def make(*words):
    command = ["make", "-C", str(ROOT), "--no-print-directory", *words]
    return output(*command)


def test_help_lists_every_target():
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets is not None
    listed = [line.split()[0] for line in make("help").splitlines()]
    assert sorted(listed) == sorted(targets[1].split())
    assert make() == make("help")


def test_demo_installs_what_a_user_needs_and_shows_progress(tmp_path):
    planned = make("-n", "demo", f"BUILT={tmp_path}/built", f"BIN={tmp_path}/bin")
    (install,) = (line for line in planned.splitlines() if "pip install" in line)
    assert install.endswith(" --editable .") and "--quiet" not in install
    assert "examples/python/demo.py" in planned
