"""The budget of lines of code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ended

CI = Path(__file__).parents[1] / ".ci"
SKIPPED, WEIGHT = CI / "skipped.py", CI / "weight.py"


def run(folder, *words, **variables):
    disabled = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = ended(sys.executable, *words, cwd=folder, env=disabled, **variables)
    return done.stdout + done.stderr


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
