"""The second round of .ci/run, and the budget of lines of code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ended

CI = Path(__file__).parents[1] / ".ci"
SKIPPED, WEIGHT = CI / "skipped.py", CI / "weight.py"
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


def run(folder, *words, **variables):
    disabled = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = ended(sys.executable, *words, cwd=folder, env=disabled, **variables)
    return done.stdout + done.stderr


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(SUITE)
    (tmp_path / "tests" / "test_module.py").write_text(MODULE)
    return tmp_path


PYTEST = ("-m", "pytest", "-p", "xdist", "-n", "1", "-rA", "-q")


@pytest.mark.slow
def test_second_round_runs_what_the_first_has_skipped(suite):
    assert "1 passed, 4 skipped" in run(suite, *PYTEST, "--junit-xml=first.xml")
    listed = run(suite, str(SKIPPED), "first.xml")
    (suite / "skipped").write_text(listed)
    second = run(suite, *PYTEST, "@skipped", MORE="1")
    assert "4 passed" in second and "test_needs_nothing" not in second


def test_nothing_skipped_is_an_error(suite):
    run(suite, *PYTEST, "--junit-xml=first.xml", MORE="1")
    assert "names no skipped test" in run(suite, str(SKIPPED), "first.xml")


@pytest.fixture
def weighed(tmp_path):
    """Weigh a checkout of these files, with room for two lines in each part."""
    pytest.importorskip("tomllib", reason="Python 3.11 lints")

    def weigh(**files):
        parts = ("product-python", "product-c", "tests", "around")
        budget = "".join(f"{part} = 2\n" for part in parts)
        (tmp_path / "pyproject.toml").write_text(f"[tool.te-select.weight]\n{budget}")
        (tmp_path / "te_select").mkdir()
        for name, text in files.items():
            (tmp_path / "te_select" / name.replace("_", ".")).write_text(text)
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
        subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
        return run(tmp_path, str(WEIGHT), PATH=os.environ["PATH"])

    return weigh


def test_docstrings_comments_and_blanks_weigh_nothing(weighed):
    python = '"""What it is.\n\nMore."""\n# why\n\nx = 1\n\ndef f():\n    """One."""\n'
    said = weighed(a_py=python, a_h="/* two\nlines */\nint x; // why\n\nint y;\n")
    assert "product-python: 2 lines of 2" in said and "product-c: 2 lines of 2" in said
    assert "too heavy" not in said


def test_one_line_too_many_is_refused(weighed):
    assert "too heavy: product-python;" in weighed(a_py="x = 1\ny = (\n    2)\n")


def test_file_of_no_known_ending_is_refused(weighed):
    assert "c.rs: is .rs source?" in weighed(c_rs="fn f() {}\n")
