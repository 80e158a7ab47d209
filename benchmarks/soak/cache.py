"""The cache of where() under bad circumstances: never a wrong result, never a hang.

Processes start cold at one moment, with file locks that do nothing. Builders get SIGKILL.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from soak.found import Found

_BUILD_SECONDS = 6.0  # of a part, with the import of TVM
_LIMIT = 300.0
_CALL = """
import fcntl, json, warnings
import numpy as np
{before}
import te_select
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cond = np.arange(5000) % 3 == 0
    x = np.arange(5000, dtype="f4")
    for _ in range(3):
        assert te_select.where(cond, x, x[::-1]).tobytes() == np.where(cond, x, x[::-1]).tobytes()
print(json.dumps([te_select.where.stats().calls, [str(each.message) for each in caught]]))
"""
_NO_LOCKS = "fcntl.flock = fcntl.lockf = lambda *_: None"


def attack(seed: int, found: Found, starts: int = 8, kills: int = 5) -> None:
    """Start and kill; every process must select right and end."""
    with tempfile.TemporaryDirectory() as folder:
        _start_cold(Path(folder, "cold"), starts, found)
        _kill_builders(Path(folder, "killed"), kills, random.Random(seed), found)


def _start_cold(folder: Path, count: int, found: Found) -> None:
    """Processes that find no entry at one moment, and whose locks do nothing.

    Others, whose locks work, would take the temporary folders for left behind.
    """
    temporary = folder.with_name("cold-tmp")
    temporary.mkdir()
    begun = [_start(folder, _NO_LOCKS, {"TMPDIR": str(temporary)}) for _ in range(count)]
    for process in begun:
        found.tried("cold starts at one moment")
        _judge("a cold start", process, found)
    left = sorted(path.name for path in folder.glob("*"))
    if [name.rpartition("-")[0] for name in left] != ["te_select-host_half", "te_select-where_w4"]:
        found.failed(f"after {count} cold starts the cache holds {', '.join(left)}")


def _kill_builders(folder: Path, kills: int, rng: random.Random, found: Found) -> None:
    """Builders that get SIGKILL at any moment; the next process must not mind."""
    temporary = folder / "tmp"
    environment = {"TMPDIR": str(temporary)}
    for number in range(kills):
        shutil.rmtree(folder, ignore_errors=True)
        temporary.mkdir(parents=True)
        process = _start(folder / "cache", environment=environment)
        try:
            process.wait(rng.uniform(0, _BUILD_SECONDS))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        found.tried("builders that were killed")
        after = _start(folder / "cache", environment=environment)
        _judge(f"the start after kill {number}", after, found)
        if left := [path.name for path in temporary.glob(".te_select-*")]:
            found.failed(f"after kill {number} there is {', '.join(left)} for good")


def _start(
    folder: Path, before: str = "", environment: Mapping[str, str] = os.environ
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CALL.format(before=before)],
        env={**os.environ, **environment, "TE_SELECT_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _judge(what: str, process: subprocess.Popen[str], found: Found) -> None:
    """Three right results by kernels, and no warning."""
    found.doing(what)
    try:
        out, errors = process.communicate(timeout=_LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        found.failed(f"{what} takes more than {_LIMIT:.0f} s")
        return
    if process.returncode:
        found.failed(f"{what} ends with {process.returncode}: {errors[-300:]}")
    elif json.loads(out) != [3, []]:
        found.failed(f"{what}: calls by kernels, of 3, and warnings: {out}")
