"""Runs the command line inside the test's process."""

import json

from typer.testing import CliRunner

from te_select.cli.verbs import app

FLAGS = ["--cond", "4,1", "--then", "4,5", "--else", ""]


def run(*args):
    """Run ``te-select`` with these arguments."""
    return CliRunner().invoke(app, [str(arg) for arg in args])


def run_json(*args):
    """Run with ``--json``, and read the document; nothing else may be printed."""
    result = run(*args, "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)
