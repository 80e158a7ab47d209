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
