"""Flips, cuts, shuffles, bad merges and hostile fields of tuning logs.

A damaged log is refused in one line, or its undamaged part is read. A record never gets another
one's workload, and a kernel that is compiled with it never gives a wrong result.
"""

import json
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import te_select
from soak import fuzz, hostile
from soak.found import Found
from te_select.errors import TuningError
from te_select.records import log
from te_select.records.folders import SESSIONS, SHIPPED, of_targets
from te_select.records.log import Record
from tests.support.damaged_bytes import damaged

_WORKLOADS = tuple(te_select.Workload((n,), (n,), (n,)) for n in (1, 79, 1024, 65536))
"""Some that have records."""
_COMPILED = 4  # one of so many logs is used to compile


def attack(seed: int, found: Found, damages: int = 60) -> None:
    """Damage logs so many times, read them, and compile by some."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        logs = _copy_logs(Path(folder, "logs"))
        for number in range(damages):
            _damage(rng, logs, found, compiles=number % _COMPILED == 0)


def _copy_logs(logs: Path) -> Path:
    """Copy some of the shipped records to new logs."""
    source = of_targets(SHIPPED)[0]
    folder = logs / source.name
    folder.mkdir(parents=True)
    (folder / SESSIONS).write_bytes((source / SESSIONS).read_bytes())
    return logs


def _damage(rng: random.Random, logs: Path, found: Found, compiles: bool) -> None:
    """Damage a log, or exchange its lines; read it, and restore it."""
    folder = of_targets(logs)[0]
    known = [_identity(entry) for entry in log.read(folder).entries]
    before = (folder / SESSIONS).read_bytes()
    harm, how = rng.choice(_HARMS)
    (folder / SESSIONS).write_bytes(harm(rng, before))
    what = f"logs with {how}"
    found.doing(what)
    found.tried(what)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            entries = log.read(folder).entries
            if how == _OTHER_LINES and any(_identity(entry) not in known for entry in entries):
                found.failed(f"{what}: a record has another one's workload")
            if compiles:
                kernel = te_select.compile(rng.choice(_WORKLOADS), tuning_logs=logs)
                fuzz.check(kernel, what, rng.randrange(1 << 32), found)
        if any("\n" in str(each.message) for each in warned):
            found.failed(f"{what}: a warning of many lines")
    except TuningError as error:
        if "\n" in str(error):
            found.failed(f"{what}: an error of many lines: {error}")
    except Exception as error:  # any other error is a failure
        found.failed(f"{what}: {type(error).__name__}: {error}")
    finally:
        (folder / SESSIONS).write_bytes(before)


def _hostile_lines(rng: random.Random, data: bytes) -> bytes:
    """Replace the fields of some lines."""
    lines = data.splitlines()
    for at in rng.sample(range(len(lines)), min(len(lines), rng.choice((1, 1, 4)))):
        lines[at] = hostile.json_text(rng, json.loads(lines[at]))
    return b"".join(line + b"\n" for line in lines)


def _lines_exchanged(rng: random.Random, data: bytes) -> bytes:
    """Delete, repeat or shuffle lines, or put merge markers between them."""
    lines = data.splitlines(keepends=True)
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    line = lines[at]
    marked = [b"<<<<<<< HEAD\n", line, b"=======\n", line, b">>>>>>> other\n"]
    ways = (
        lines[:at] + lines[at + 1 :],
        [*lines[:other], line, *lines[other:]],
        rng.sample(lines, len(lines)),
        lines[:at] + marked + lines[at + 1 :],
        lines[::-1],
        lines[:at],
    )
    return b"".join(rng.choice(ways))


_OTHER_LINES = "other lines"
_HARMS: tuple[tuple[Callable[[random.Random, bytes], bytes], str], ...] = (
    (_lines_exchanged, _OTHER_LINES),
    (damaged, "damaged bytes"),
    (_hostile_lines, "hostile fields"),
)


def _identity(entry: Record) -> tuple[Any, ...]:
    return entry.workload, entry.key, dict(entry.config), entry.seconds
