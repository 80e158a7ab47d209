"""Tunes by the command line; the test has replaced the measurer by a fake one."""

import json

from tests.support.cli import run_json

TARGET = "x86-64-v4"
ON = ["--target", TARGET]
FLAGS = ["--cond", "1024", "--then", "1024", "--else", "1024"]


def flags_of(*workloads):
    """The flags that name workloads."""
    return [word for each in workloads for word in ("--workload", json.dumps(each.to_json()))]


def tuned(folder, fake, *flags):
    """Tune a workload with a new fake measurer, and return the document that is printed."""
    fake()
    return run_json("tune", *(flags or FLAGS), *ON, "--trials", "80", "--tuning-logs", folder)
