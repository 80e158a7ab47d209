"""Candidates for the tests of measuring, and the processes that they start."""

import os
from dataclasses import asdict
from pathlib import Path

from te_select.backends.targets import resolve
from te_select.tuning.task import Candidate
from tests.support import ROOT, masked_rows
from tests.support.tuning import default_of

BAD_BUILDER = "tests.support.tuning_bad_builder"
INSIDE = "TE_SELECT_TEST_INSIDE"  # the file that appears once a candidate hangs
W = masked_rows(64, 500)


def candidate(workload=W, **knobs):
    default = default_of(workload, resolve("native"))
    return Candidate(workload, "native", {**asdict(default), **knobs})


def children(pid):
    """Processes that a process has started, and that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def environment():
    return {**os.environ, "PYTHONPATH": str(ROOT)}
