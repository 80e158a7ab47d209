"""Exporters are killed at any moment: the old artifact or the new one loads, and nothing is left.

At first the path has a good artifact. A process exports over it again and again, and gets SIGKILL.
Then the artifact is loaded, and exported once more. The folder must hold that one and nothing else.
"""

import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import te_select
from soak.found import Found
from soak.libraries import FILES, WORKLOAD, judged, pair
from te_select.errors import ArtifactError
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.stored import Stored

_fork = multiprocessing.get_context("fork")
_EXPORT_SECONDS = 0.02  # time of two exports with their renames
_COMPILE_SECONDS = 1.0  # time of a compilation with its export
_READY_SECONDS = 60.0
Exporting = Callable[[Path, tuple[Stored, Stored]], None]


def attack(seed: int, found: Found, kills: int = 30) -> None:
    """Kill exporters of libraries, of kernels that were loaded, and of kernels just compiled."""
    rng = random.Random(seed)
    plain, mirrored = pair()
    ways: tuple[tuple[str, tuple[Stored, Stored], Exporting, float], ...] = (
        ("libraries", (plain, mirrored), _write, _EXPORT_SECONDS),
        ("a loaded kernel", (plain, mirrored), _export_kernel, _EXPORT_SECONDS),
        ("libraries", (mirrored, plain), _write, _EXPORT_SECONDS),
        ("a loaded kernel", (mirrored, plain), _export_kernel, _EXPORT_SECONDS),
        ("a compilation", (mirrored, plain), _compile, _COMPILE_SECONDS),
    )
    for number in range(kills):
        what, libraries, work, seconds = ways[number % len(ways)]
        with tempfile.TemporaryDirectory() as folder:
            path = stored.write(libraries[0], Path(folder, "mask.so"))
            _kill(work, path, libraries, rng.uniform(0, seconds))
            found.tried(f"kills in exports of {what}")
            try:
                problem = judged(te_select.load(path))
            except ArtifactError as error:
                problem = f"the artifact cannot be loaded: {error}"
            if problem:
                found.failed(f"kill {number} in an export of {what}: {problem}")
            stored.write(plain, path)
            names = sorted(each.name for each in Path(folder).iterdir())
            if names != FILES:
                found.failed(
                    f"kill {number} in an export of {what}: after the next export the folder holds "
                    + ", ".join(names)
                )


def _kill(work: Exporting, path: Path, libraries: tuple[Stored, Stored], seconds: float) -> None:
    """Start a process that exports in a loop, and kill it some seconds after it has begun."""

    def loop(ready: Connection) -> None:
        ready.send(True)
        while True:
            work(path, libraries)

    ours, theirs = _fork.Pipe()
    process = _fork.Process(target=loop, args=(theirs,), daemon=True)
    process.start()
    ours.poll(_READY_SECONDS)
    time.sleep(seconds)
    process.kill()
    process.join()


def _write(path: Path, libraries: tuple[Stored, Stored]) -> None:
    for library in libraries:
        stored.write(library, path)


def _export_kernel(path: Path, _libraries: tuple[Stored, Stored]) -> None:
    """Load the library at the path, and export one of its kernels alone over it."""
    loaded = te_select.load(path)
    kernel = loaded if isinstance(loaded, te_select.Kernel) else loaded[WORKLOAD.name]
    kernel.export(path)


def _compile(path: Path, _libraries: tuple[Stored, Stored]) -> None:
    te_select.export([WORKLOAD], path, tuning_logs=False)
