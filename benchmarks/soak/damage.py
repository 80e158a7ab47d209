"""Flips, cuts and edits of libraries, of manifests and of tuning logs.

Whatever is damaged is refused in one line, or is read as if nothing had happened: a damaged library
is never run, a kernel never gives a wrong result, a record never gets another one's workload.
"""

from __future__ import annotations

import functools
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import te_select
from soak.found import Found
from soak.libraries import WORKLOAD, judged, of_first_format, pair
from te_select.cli import app
from te_select.errors import ArtifactError, TuningError
from te_select.records import log
from te_select.records.lookup import SHIPPED
from te_select.runtime import embedded, stored
from te_select.runtime.manifest import FIRST_FORMAT
from te_select.runtime.stored import Stored

_RECORDS_KEPT = 12
_INSPECTED = 8  # one of so many
_COND = np.arange(64) % 2 == 0
_THEN, _ELSE = np.ones(64, np.float32), np.zeros(64, np.float32)
_VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**70,
    1.5,
    "",
    "x" * 5000,
    "\0",
    [],
    [[]],
    {},
    {"a": 1},
)

Judge = Callable[[Any], str]


def attack(seed: int, found: Found, damages: int = 300) -> None:
    """Damage libraries and manifests so many times, and logs a tenth as often."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mask.so")
        for number in range(damages):
            library, flip = pair()[number % 2], bool(number % 2)
            old = of_first_format(library)
            _damage_library(rng, rng.choice((library, old.alone(old.manifest))), path, found)
            _damage_old_library(rng, old, functools.partial(_wrong, mirrored=flip), path, found)
            _edit_manifest(rng, library, functools.partial(_wrong, mirrored=flip), path, found)
        logs = _copy_logs(Path(folder, "logs"))
        for _ in range(max(1, damages // 10)):
            _damage_logs(rng, logs, found)


def _damage_library(rng: random.Random, library: Stored, path: Path, found: Found) -> None:
    """Damage a library that holds its manifest, then only what lies beside it."""
    path.write_bytes(_damaged(rng, library.image))
    path.with_suffix(".json").write_bytes(library.beside())
    changed = path.read_bytes() != library.image
    _load(path, found, "damaged libraries", None if changed else judged)
    path.write_bytes(library.image)
    beside = _damaged(rng, library.beside())
    path.with_suffix(".json").write_bytes(beside)
    _load(path, found, "libraries beside damaged manifests", judged)
    what = "exports over damaged manifests"
    found.tried(what)
    try:
        stored.write(library, path)
        expected = library.beside()
    except ArtifactError as error:
        expected = b"" if "\n" in str(error) else beside
    if path.with_suffix(".json").read_bytes() != expected:
        found.failed(f"{what}: it was neither refused in one line nor replaced")


def _damage_old_library(
    rng: random.Random, old: Stored, judge: Judge, path: Path, found: Found
) -> None:
    """Damage one of the two files of the first format."""
    text = json.dumps(old.manifest.to_json(old.sha256) | {"format": FIRST_FORMAT}).encode()
    code = rng.choice((True, False))
    path.write_bytes(_damaged(rng, old.image) if code else old.image)
    path.with_suffix(".json").write_bytes(text if code else _damaged(rng, text))
    same = path.read_bytes() == old.image
    _load(path, found, "damaged libraries of the first format", judge if same else None)


def _edit_manifest(
    rng: random.Random, library: Stored, judge: Judge, path: Path, found: Found
) -> None:
    """Edit the manifest inside a library, and seal it again; or that of the first format."""
    data = library.manifest.to_json("0" * 64)
    for _ in range(rng.randrange(1, 4)):
        _edit(rng, data)
    if rng.choice((True, False)):
        old = of_first_format(library)
        path.write_bytes(old.image)
        path.with_suffix(".json").write_text(
            json.dumps({**data, "sha256": old.sha256, "format": FIRST_FORMAT})
        )
    else:
        start = library.image.index(b'{"sha256": "')
        room = library.image.index(b"\0", start) - start
        text = json.dumps(data).encode()[:room].ljust(room)  # one that is cut is edited, too
        path.write_bytes(
            embedded.seal(library.image[:start] + text + library.image[start + room :])
        )
        path.with_suffix(".json").unlink(missing_ok=True)
    _load(path, found, "libraries with an edited manifest", judge)


def _wrong(loaded: te_select.Kernel | te_select.Library, mirrored: bool) -> str:
    """What is wrong with what a library computes, whatever its manifest says."""
    kernel = loaded if isinstance(loaded, te_select.Kernel) else loaded.get(WORKLOAD.name)
    if kernel is None or kernel.workload != WORKLOAD:  # which is what an edit may say
        return ""
    right = (kernel(_COND, _THEN, _ELSE) == (_COND ^ mirrored)).all()
    return "" if right else "it gives a wrong result"


def _load(path: Path, found: Found, what: str, judge: Judge | None) -> None:
    """Load what was damaged; without a judge, it must be refused."""
    found.tried(what)
    try:
        loaded = te_select.load(path)
    except ArtifactError as error:
        if "\n" in str(error):
            found.failed(f"{what}: an error of many lines: {error}")
    except Exception as error:  # whatever else it is, it is a finding
        found.failed(f"{what}: {type(error).__name__}: {error}")
    else:
        if judge is None:
            found.failed(f"{what}: it was loaded")
        elif problem := judge(loaded):
            found.failed(f"{what}: {problem}")
    if found.counts[what] % _INSPECTED:
        return
    shown = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    found.tried("damaged files that were inspected")
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        found.failed(f"{what}: inspect ended in {shown.exception!r}")


def _damaged(rng: random.Random, data: bytes) -> bytes:
    """Flip a bit or some bytes, cut, repeat, exchange or empty."""
    at, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    near = rng.choice((at, min(at, 64), min(at, 600)))  # headers are looked at more closely
    ways: tuple[Callable[[], bytes], ...] = (
        lambda: _flipped(rng, data, near),
        lambda: _flipped(rng, data, near),
        lambda: _flipped(rng, _flipped(rng, data, at), other),
        lambda: data[:at],
        lambda: data[:at] + bytes(rng.randrange(256) for _ in range(8)) + data[at + 8 :],
        lambda: data[:at] + bytes(other - at) + data[other:],
        lambda: data[:at] + data[other:],
        lambda: data + data[at:other],
        lambda: data[other:] + data[:other],
        lambda: b"",
    )
    return rng.choice(ways)()


def _flipped(rng: random.Random, data: bytes, at: int) -> bytes:
    at = min(at, len(data) - 1)
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _edit(rng: random.Random, data: Any) -> None:
    """Put something else into the place of a value, or of a part of it; or leave it out."""
    places = list(data) if isinstance(data, dict) else list(range(len(data)))
    if not places:
        return
    place = rng.choice([each for each in places if each != "sha256"])
    inner = data[place]
    if isinstance(inner, (dict, list)) and inner and _chance(rng, 0.8):
        _edit(rng, inner)
    elif _chance(rng, 0.2):
        del data[place]
    elif isinstance(inner, str) and inner and _chance(rng, 0.4):
        data[place] = _flipped(rng, inner.encode(), rng.randrange(len(inner))).decode("latin-1")
    elif type(inner) is int and _chance(rng, 0.4):
        data[place] = inner + rng.choice((-1, 1))
    else:
        data[place] = rng.choice(_VALUES)


def _chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share


# ---- tuning logs --------------------------------------------------------------------------------


def _copy_logs(logs: Path) -> Path:
    """Some of the records that are shipped, as logs of their own."""
    (source,) = log.target_folders(SHIPPED)[:1]
    folder = logs / source.name
    folder.mkdir(parents=True)
    workloads = (source / log.WORKLOADS).read_text().splitlines()
    records = (source / log.RECORDS).read_text().splitlines()[:_RECORDS_KEPT]
    lines = []
    for number, record in enumerate(map(json.loads, records)):
        lines.append(workloads[record[0]])
        record[0] = number
    (folder / log.WORKLOADS).write_text("\n".join(lines) + "\n")
    numbered = [f"[{i},{text.partition(',')[2]}" for i, text in enumerate(records)]
    (folder / log.RECORDS).write_text("\n".join(numbered) + "\n")
    (folder / log.SESSIONS).write_text((source / log.SESSIONS).read_text())
    return logs


def _damage_logs(rng: random.Random, logs: Path, found: Found) -> None:
    """Damage one of the files of a log, or exchange its lines; compile by it, and mend it."""
    (folder,) = log.target_folders(logs)
    known = {_identity(entry) for entry in log.read(folder).entries}
    before = {name: (folder / name).read_bytes() for name in (log.WORKLOADS, log.RECORDS)}
    before[log.SESSIONS] = (folder / log.SESSIONS).read_bytes()
    name = rng.choice(list(before))
    by_line = _chance(rng, 0.6)
    change = _lines_exchanged if by_line else _damaged
    (folder / name).write_bytes(change(rng, before[name]))
    what = "logs with other lines" if by_line else "damaged logs"
    found.tried(what)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            entries = log.read(folder).entries
            kernel = te_select.compile(WORKLOAD, tuning_logs=logs)
        if any("\n" in str(each.message) for each in warned):
            found.failed(f"{what}: {name}: a warning of many lines")
        if (kernel(_COND, _THEN, _ELSE) != _COND).any():
            found.failed(f"{what}: {name}: the kernel gives a wrong result")
        if by_line and (strange := [e for e in entries if _identity(e) not in known]):
            found.failed(f"{what}: {name}: {len(strange)} records have another one's workload")
    except TuningError as error:
        if "\n" in str(error):
            found.failed(f"{what}: {name}: an error of many lines: {error}")
    except Exception as error:  # whatever else it is, it is a finding
        found.failed(f"{what}: {name}: {type(error).__name__}: {error}")
    for each, data in before.items():
        (folder / each).write_bytes(data)


def _lines_exchanged(rng: random.Random, data: bytes) -> bytes:
    """Delete, repeat or shuffle lines, or leave the marks of a merge among them."""
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


def _identity(entry: log.Entry) -> tuple[Any, ...]:
    return entry.workload, entry.key, tuple(sorted(entry.knobs.items())), entry.seconds
