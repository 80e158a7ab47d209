"""The variables of the environment: all are known, and others are warned of."""

import os
import re
import tempfile
from pathlib import Path
from unittest.mock import Mock

import pytest

from te_select.base.variables import KNOWN, OF_TESTS, have_a_cache, unknown
from te_select.cli import env
from tests.support import ROOT, script, text_of
from tests.support.cli import run, run_json

NAMES = re.compile(r"\bTE_SELECT_[A-Z_]*[A-Z]\b")
NO_CODE = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', re.DOTALL)
"""Strings and comments of C."""
READ = re.compile(r'(?:getenv|environ\.get|named_by|user_folder)\("(\w+)"')


def texts(*endings):
    folders = ("te_select", "schedules", "benchmarks", "examples", "release")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.*")]
    return [path.read_text() for path in (*files, ROOT / "setup.py") if path.suffix in endings]


def test_every_variable_that_the_sources_name_is_known():
    in_c = texts(".c", ".h", ".cuh", ".cc")
    macros = {name for text in in_c for name in NAMES.findall(NO_CODE.sub("", text))}
    macros |= {f"{name}_" for name in macros}  # guards of headers
    named = {name for text in (*in_c, *texts(".py")) for name in NAMES.findall(text)} - macros
    assert named == {*KNOWN, *OF_TESTS}


def test_one_table_of_the_documents_has_all_variables():
    page = text_of("docs/commands.md")
    assert re.findall(r"^\| `(TE_SELECT_\w+)` \|", page, re.MULTILINE) == [*KNOWN]


def test_variables_of_others_stand_below_that_table():
    page = text_of("docs/commands.md").partition("### Variables of others")[2]
    named = {*env._VARIABLES}
    for path in (ROOT / "te_select").rglob("*.*"):
        if path.suffix in {".c", ".py"}:
            named.update(READ.findall(path.read_text()))
    assert not [name for name in named.difference(KNOWN) if f"`{name}`" not in page]


@pytest.mark.parametrize(
    "name, said",
    [
        ("TE_SELECT_NUM_THREAD", "did you mean TE_SELECT_NUM_THREADS?"),
        ("TE_SELECT_CACHEDIR", "did you mean TE_SELECT_CACHE_DIR?"),
        ("TE_SELECT_FAST", f"expected one of {', '.join(KNOWN)}"),
        ("TE_SELECT_", "expected one of"),
    ],
)
def test_unknown_variable_is_named_with_the_one_that_is_meant(name, said, monkeypatch):
    monkeypatch.setenv(name, "2")
    (line,) = unknown()
    assert line.startswith(f"the variable {name!r} is not known; {said}")


def test_known_variables_are_not_complained_of(monkeypatch):
    for name in (*KNOWN, *OF_TESTS, "TE_SELECTED", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    assert unknown() == []


def test_cache_of_a_user_without_a_home_is_temporary(monkeypatch):
    """Unless the user has named one."""
    monkeypatch.setattr(Path, "home", Mock(side_effect=RuntimeError))
    monkeypatch.setenv("XDG_CACHE_HOME", "/own")
    have_a_cache()
    assert os.environ.pop("XDG_CACHE_HOME") == "/own"
    have_a_cache()
    temporary = f"{tempfile.gettempdir()}/te-select-{os.getuid()}"
    assert os.environ["XDG_CACHE_HOME"] == temporary


def python(code):
    """Run Python with a misspelt variable."""
    done = script(code, TE_SELECT_NUM_THREAD="2")
    assert done.returncode == 0, done.stderr
    return done


def test_first_use_warns_once_at_the_users_line():
    done = python(
        "import te_select\nte_select.Workload((), (), ())\nprint(1, flush=True)\n"
        "te_select.load\nte_select.Kernel\nfrom te_select import where"
    )
    assert done.stderr.count("Warning") == 1  # Python 3.13 shows the source line behind it
    where = "<string>:4: RuntimeWarning: the variable 'TE_SELECT_NUM_THREAD' is not known"
    assert done.stderr.startswith(where)


def test_command_line_warns_in_one_line_and_env_shows_it(monkeypatch):
    code = "import sys; from te_select.cli import main; sys.argv = ['', '--version']; main()"
    said = "the variable 'TE_SELECT_NUM_THREAD' is not known; did you mean TE_SELECT_NUM_THREADS?"
    assert python(code).stderr == f"te-select: warning: {said}\n"
    assert run_json("env")["unknown_variables"] == []
    monkeypatch.setenv("TE_SELECT_NUM_THREAD", "2")
    found = run_json("env")
    assert found["unknown_variables"] == [said]
    assert {*KNOWN, "AR", "CC", "OBJCOPY", "TMPDIR"} < set(found["variables"])
    assert said in run("env").stdout
