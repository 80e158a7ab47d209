"""A fresh clone, a fresh home, and a shell in them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

SECONDS = 1800
_OURS = ("VIRTUAL_ENV", "PYTHONPATH", "XDG_", "TE_SELECT_", "PYTEST_")


def clone_to(folder):
    """Copy the files of the repository as they are now, without those that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    clone = folder / "te-select"
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).exists():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    return clone


def shell(script, folder, environment):
    """Run a script that stops at its first failure; its exit status, and the end of its output."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return done.returncode, done.stdout[-20_000:]


def environment_of(home):
    """Variables with a new home, without a virtual environment and what tests set.

    ``PYTHON`` is the Python that virtual environments are made of. The test is skipped where pip
    reaches no package index.
    """
    home.mkdir()
    found = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    own = Path(sys.executable).parent
    found["PATH"] = os.pathsep.join(p for p in found["PATH"].split(os.pathsep) if Path(p) != own)
    found["HOME"] = str(home)
    found["PYTHON"] = getattr(sys, "_base_executable", sys.executable)
    script = '"$PYTHON" -m venv reached && reached/bin/pip download --no-deps packaging'
    status, output = shell(script, home, found)
    if status:
        pytest.skip(f"pip reaches no package index: {output.strip().splitlines()[-1]}")
    return found
