"""Flips, cuts and edits of libraries and of manifests.

A damaged file is refused in one line, or is read with the same result as before. A damaged library
is never run, and a kernel never gives a wrong result.
"""

import copy
import functools
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import te_select
from soak.found import Found
from te_select.base import scratch
from te_select.cli.verbs import app
from te_select.errors import ArtifactError
from te_select.runtime.artifact import embedded, stored
from te_select.runtime.artifact.stored import Stored
from tests.support.damaged_bytes import damaged, flipped

_INSPECTED = 8  # one of so many files is inspected, too
_WAYS_INTO = 8  # of ten edits go deeper, so that deeply nested values are edited as often
_OTHERS = 12  # more kernels in every second library
_WORKLOAD = te_select.Workload((64,), (64,), (64,), "float32")
_COND = np.arange(64) % 2 == 0
_THEN = np.ones(64, np.float32)
_ELSE = np.zeros(64, np.float32)
_VALUES: list[Any] = [None, True, -1, 2**70, 1.5, "", "x" * 5000, "\0", [], [[]], {}, {"a": 1}]


def attack(seed: int, found: Found, damages: int = 100) -> None:
    """Damage libraries and manifests so many times each."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mask.so")
        for number in range(damages):
            library = _library(_OTHERS * (number % 2))
            _damage_library(rng, library, path, found)
            _edit_manifest(rng, library, path, found)


@functools.cache
def _library(others: int) -> Stored:
    """A library of one kernel and of so many others."""
    small = (te_select.Workload((n,), (n,), (n,), "int32") for n in range(1, others + 1))
    with scratch.folder() as folder:
        path = te_select.export([_WORKLOAD, *small], folder / "mask.so", tuning_logs=False)
        return stored.read(path)


def _damage_library(rng: random.Random, library: Stored, path: Path, found: Found) -> None:
    """Damage a library that holds its manifest, then only the file beside it."""
    path.write_bytes(damaged(rng, library.image))
    path.with_suffix(".json").write_bytes(library.manifest.to_text(library.sha256))
    changed = path.read_bytes() != library.image
    _load(path, found, "damaged libraries", must_fail=changed)
    path.write_bytes(library.image)
    beside = damaged(rng, library.manifest.to_text(library.sha256))
    path.with_suffix(".json").write_bytes(beside)
    _load(path, found, "libraries beside damaged manifests")
    what = "exports over damaged manifests"
    found.tried(what)
    try:
        stored.write(library, path)
        expected = library.manifest.to_text(library.sha256)
    except ArtifactError as error:
        expected = b"" if "\n" in str(error) else beside
    if path.with_suffix(".json").read_bytes() != expected:
        found.failed(f"{what}: it was neither refused in one line nor replaced")


def _edit_manifest(rng: random.Random, library: Stored, path: Path, found: Found) -> None:
    """Edit the manifest inside a library, and seal it again."""
    data = library.manifest.to_json("0" * 64)
    for _ in range(rng.randrange(1, 4)):
        _edit(rng, data)
    start = library.image.index(b'{"sha256": "')
    room = library.image.index(b"\0", start) - start
    text = json.dumps(data).encode()[:room].ljust(room)  # one that is cut is edited, too
    path.write_bytes(embedded.seal(library.image[:start] + text + library.image[start + room :]))
    path.with_suffix(".json").unlink(missing_ok=True)
    _load(path, found, "libraries with an edited manifest")


def _is_wrong(loaded: te_select.Kernel | te_select.Library) -> bool:
    """Whether the kernel of the library, if its manifest still tells of it, selects wrong."""
    kernel = loaded if isinstance(loaded, te_select.Kernel) else loaded.get(_WORKLOAD.name)
    if kernel is None or kernel.workload != _WORKLOAD:  # which is what an edit may say
        return False
    return bool((kernel(_COND, _THEN, _ELSE) != _COND).any())


def _load(path: Path, found: Found, what: str, must_fail: bool = False) -> None:
    """Load a damaged library."""
    found.tried(what)
    try:
        loaded = te_select.load(path)
    except ArtifactError as error:
        if "\n" in str(error):
            found.failed(f"{what}: an error of many lines: {error}")
    except Exception as error:  # any other error is a failure
        found.failed(f"{what}: {type(error).__name__}: {error}")
    else:
        if must_fail or _is_wrong(loaded):
            found.failed(f"{what}: it was loaded{'' if must_fail else ', and selects wrong'}")
    if found.counts[what] % _INSPECTED:
        return
    shown = CliRunner().invoke(app, ["inspect", str(path), "--json"])
    found.tried("damaged files that were inspected")
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        found.failed(f"{what}: inspect ended in {shown.exception!r}")


def _edit(rng: random.Random, data: Any) -> None:
    """Replace a value or a part of it by something else, or leave it out."""
    places = list(data) if isinstance(data, dict) else list(range(len(data)))
    if not places:
        return
    place = rng.choice([each for each in places if each != "sha256"])
    inner = data[place]
    way = rng.randrange(10)
    if isinstance(inner, (dict, list)) and inner and way < _WAYS_INTO:
        _edit(rng, inner)
    elif way == 0:
        del data[place]
    elif isinstance(inner, str) and inner and way % 2:
        data[place] = flipped(rng, inner.encode(), rng.randrange(len(inner))).decode("latin-1")
    elif type(inner) is int and way % 2:
        data[place] = inner + rng.choice((-1, 1))
    else:
        data[place] = copy.deepcopy(rng.choice(_VALUES))
