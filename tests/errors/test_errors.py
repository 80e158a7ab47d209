"""Warnings of te_select, where they point; and what names say that are gone."""

import re
import sys

from te_select.base import imports
from tests.support import ROOT, ended


def warned(folder, text, *options):
    """What a script says first, in a process of its own, where the cache cannot be written."""
    script = folder / "caller.py"
    script.write_text(text)
    (folder / "file").touch()
    done = ended(sys.executable, *options, script, TE_SELECT_CACHE_DIR=folder / "file")
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[0].removeprefix(f"{script}:")


def test_warning_points_at_the_line_that_called_te_select(tmp_path):
    first = warned(
        tmp_path,
        "import te_select\nw = te_select.Workload((4,), (4,), ())\n\n"
        "te_select.compile(w, tuning_logs=False)\n",
    )
    assert first.startswith("4: RuntimeWarning: te_select cannot keep what it has built")
    assert "set TE_SELECT_CACHE_DIR to a folder" in first


def test_warning_made_an_error_is_shown_and_the_call_goes_on(tmp_path):
    text = (
        "import numpy as np, te_select\ncond, x = np.arange(6) % 2 == 0, np.arange(6.0)\n"
        "assert (te_select.where(cond, x, 0) == np.where(cond, x, 0)).all()\n"
        "assert te_select.where.stats().calls == 1\n"
    )
    expected = "3: RuntimeWarning: te_select cannot keep what it has built"
    assert warned(tmp_path, text, "-W", "error").startswith(expected)


def test_message_names_the_package_that_has_the_module():
    named = {"tvm_ffi": "apache-tvm-ffi", "tvm.ir": "apache-tvm", "onnx": "onnx"}
    for module, package in named.items():
        error = imports.not_installed("te_select.load", ModuleNotFoundError(name=module))
        said = f"te_select.load needs {module}, which is not installed; pip install {package}"
        assert str(error) == said


def test_no_message_installs_us_by_a_name_of_an_index():
    """SECURITY.md, "Names of packages"."""
    for path in (ROOT / "te_select").rglob("*.py"):
        assert not re.search(r"install '?te-select", path.read_text()), path
        assert "te-select[" not in path.read_text(), path
