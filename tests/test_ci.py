"""The second round of .ci/run: the tests that the first has skipped, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SKIPPED = Path(__file__).parents[1] / ".ci" / "skipped.py"
SUITE = """
import os, pytest
@pytest.mark.parametrize("n", ["a b", "c[d]"])
def test_needs_more(n):
    if "MORE" not in os.environ:
        pytest.skip("no more")
@pytest.mark.parametrize("file", ["some"] if "MORE" in os.environ else [])
def test_takes_the_files_there_are(file):
    pass
def test_needs_nothing():
    pass
"""
MODULE = """
import os, pytest
if "MORE" not in os.environ:
    pytest.skip("no more", allow_module_level=True)
def test_of_a_skipped_module():
    pass
"""


def run(folder: Path, *words: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(SUITE)
    (tmp_path / "tests" / "test_module.py").write_text(MODULE)
    return tmp_path


PYTEST = ("-m", "pytest", "-p", "xdist", "-n", "1", "-rA", "-q")


@pytest.mark.slow
def test_second_round_runs_what_the_first_has_skipped(suite: Path) -> None:
    assert "1 passed, 4 skipped" in run(suite, *PYTEST, "--junit-xml=first.xml")
    listed = run(suite, str(SKIPPED), "first.xml")
    (suite / "skipped").write_text(listed)
    second = run(suite, *PYTEST, "@skipped", MORE="1")
    assert "4 passed" in second and "test_needs_nothing" not in second


def test_nothing_skipped_is_an_error(suite: Path) -> None:
    run(suite, *PYTEST, "--junit-xml=first.xml", MORE="1")
    assert "names no skipped test" in run(suite, str(SKIPPED), "first.xml")
