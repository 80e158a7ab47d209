"""Runs the command line inside the test's process."""

import json

from typer.testing import CliRunner

from te_select.cli.verbs import app

FLAGS = ["--cond", "4,1", "--then", "4,5", "--else", ""]


def run(*args):
    """Run ``te-select`` with these arguments."""
    return CliRunner().invoke(app, [str(arg) for arg in args])


def refused(*args, code=2):
    """What is said of arguments that are refused: one line, and nothing is printed."""
    result = run(*args)
    assert (result.exit_code, result.stdout) == (code, ""), result.output
    assert result.stderr.startswith("te-select: error: ") and result.stderr.count("\n") == 1
    return result.stderr


def run_json(*args):
    """Run with ``--json``, and read the document; nothing else may be printed."""
    result = run(*args, "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)
