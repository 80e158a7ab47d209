"""The cache of where() under bad circumstances: never a wrong result, never a hang.

Processes start cold at one moment, with file locks that do nothing. Builders get SIGKILL. The cache
is small, read-only or full. Entries are cut and flipped.
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
from typing import Any

from soak.found import Found
from te_select.errors import ArtifactError
from te_select.selecting.kernels import library
from tests.support.damaged_bytes import flipped

_BUILD_SECONDS = 6.0  # of a part, with the import of TVM
_LIMIT = 300.0
_CALL = """
import os, sys, warnings
import numpy as np
import fcntl, json
{before}
import te_select
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cond = np.arange(5000) % 3 == 0
    x = np.arange(5000).astype({dtype!r})
    for _ in range(3):
        assert te_select.where(cond, x, x[::-1]).tobytes() == np.where(cond, x, x[::-1]).tobytes()
print(json.dumps([te_select.where.stats().calls, [str(each.message) for each in caught]]))
"""
NO_LOCKS = "fcntl.flock = fcntl.lockf = lambda *_: None"
FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from te_select.files import cache
write = cache.write
def into_a_full_folder(*given):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        return write(*given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
cache.write = into_a_full_folder
"""


def attack(seed: int, found: Found, starts: int = 8, kills: int = 5, damages: int = 50) -> None:
    """Start, kill and damage; every process must select right and end."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        cold = Path(folder, "cold")
        cold_starts(cold, starts, found)
        kill_builders(Path(folder, "killed"), kills, rng, found)
        bad_folders(Path(folder, "bad"), cold, found)
        damage_entries(cold, damages, rng, found)


def cold_starts(folder: Path, count: int, found: Found) -> None:
    """Processes that find no entry at one moment, and whose locks do nothing."""
    begun = [_start(folder, NO_LOCKS) for _ in range(count)]
    for process in begun:
        found.tried("cold starts at one moment")
        _judge("a cold start", process, found)
    left = sorted(path.name for path in folder.glob("*"))
    if [name.rpartition("-")[0] for name in left] != ["te_select-host_half", "te_select-where_w4"]:
        found.failed(f"after {count} cold starts the cache holds {', '.join(left)}")


def kill_builders(folder: Path, kills: int, rng: random.Random, found: Found) -> None:
    """Builders that get SIGKILL at any moment; the next process must not mind."""
    temporary = folder / "tmp"
    for number in range(kills):
        shutil.rmtree(folder, ignore_errors=True)
        temporary.mkdir(parents=True)
        process = _start(folder / "cache", environment={"TMPDIR": str(temporary)})
        try:
            process.wait(rng.uniform(0, _BUILD_SECONDS))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate()
        found.tried("builders that were killed")
        _judge(
            f"the start after kill {number}",
            _start(folder / "cache", environment={"TMPDIR": str(temporary)}),
            found,
        )
        if left := [path.name for path in temporary.glob(".te_select-*")]:
            found.failed(f"after kill {number} there is {', '.join(left)} for good")


def bad_folders(folder: Path, cold: Path, found: Found) -> None:
    """A cache that is small, cannot be written, or is full."""
    folder.mkdir()
    small = folder / "small"
    _judge("a cache of 1 MiB", _start(small, environment={"TE_SELECT_CACHE_SIZE": "1"}), found)
    (folder / "file").touch()
    for what, path, before in (
        ("a cache that is a file", folder / "file", ""),
        ("a cache that cannot be made", Path("/proc/te-select"), ""),
        ("a full cache", folder / "full", FULL),
    ):
        _judge(what, _start(path, before), found, warns=True)
    if (folder / "full").is_dir() and (left := [*(folder / "full").iterdir()]):
        found.failed(f"a full cache holds {', '.join(path.name for path in left)}")
    read_only = shutil.copytree(cold, folder / "read_only")
    read_only.chmod(0o500)
    _judge("a read-only cache with the entry", _start(read_only), found)
    read_only.chmod(0o700)
    found.tried("bad folders", 5)


def damage_entries(folder: Path, damages: int, rng: random.Random, found: Found) -> None:
    """Entries that are cut or flipped are refused, and built again."""
    (path,) = folder.glob("te_select-where_*.so")
    image = path.read_bytes()
    for _ in range(damages):
        at = rng.randrange(len(image))
        damaged = flipped(rng, image, at)
        for what, data in (("cut", image[:at]), ("flipped", damaged)):
            found.tried(f"entries that were {what}")
            try:
                library._checked(data, "it")
            except ArtifactError:
                continue
            found.failed(f"an entry that was {what} at {at} is taken")
    path.write_bytes(damaged)
    _judge("a damaged entry", _start(folder), found)
    if path.read_bytes() != image:
        found.failed("a damaged entry was not built again as it was")


def _start(
    folder: Path, before: str = "", environment: Mapping[str, str] = os.environ, dtype: str = "f4"
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _CALL.format(before=before, dtype=dtype)],
        env={**os.environ, **environment, "TE_SELECT_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _judge(what: str, process: subprocess.Popen[str], found: Found, *, warns: bool = False) -> None:
    """Three right results by kernels, and as many warnings as there should be."""
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
        return
    answer: tuple[int, list[Any]] = json.loads(out)
    if answer[0] != 3 or len(answer[1]) != warns:  # noqa: PLR2004 - calls of the program
        found.failed(f"{what}: kernels served {answer[0]} of 3 calls; warnings: {answer[1]}")
