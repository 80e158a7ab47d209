"""Tests whose outcome depends on the moment, once more: writers race and are killed, threads meet.

Nothing is drawn, so a seed only counts the rounds.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence

from soak.found import Found
from soak.rounds import ROOT

_TESTS = (
    "tests/runtime/artifact/test_stored.py",
    "tests/base/test_forks.py",
    "tests/runtime/c/cpu/test_pool.py",
    "tests/runtime/c/where/test_where_threads.py",
    "tests/runtime/c/cpu/test_beside_torch.py",
)
_FAILED = re.compile("^(?:FAILED|ERROR) (.*)", re.MULTILINE)


def attack(_seed: int, found: Found, tests: Sequence[str] = _TESTS) -> None:
    """Run the tests once."""
    run(tests, found, {})


def run(tests: Sequence[str], found: Found, variables: Mapping[str, str]) -> None:
    """Run tests, slow ones too, with variables of the environment."""
    found.doing(f"pytest {' '.join(tests)}")
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "not long and not gpu", *tests),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "400", **variables},  # room for the reasons
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if passed := re.search(r"(\d+) passed", done.stdout):
        found.tried("tests", int(passed[1]))
    said = _FAILED.findall(done.stdout)
    if done.returncode and not said:  # the process has died, or there is no such test
        last = (done.stdout + done.stderr).splitlines()[-1:]
        said = [f"pytest ended with code {done.returncode}: {' '.join(last)}"]
    for each in said:
        found.failed(each)
