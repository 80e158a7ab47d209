"""Exporters and loaders race for one path: a loader gets one library or the other, whole.

A pair is two processes that write their library to one path at the same moment. Meanwhile a third
process loads it over and over. After every pair the artifact must be one of the two. A copy over
the same file is not an export: then a loader may be refused, but must never get a mixture.
"""

import contextlib
import multiprocessing
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from pathlib import Path

import te_select
from soak.found import Found, one_line
from soak.libraries import FILES, judged, pair
from te_select.errors import ArtifactError
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.manifest import parse
from te_select.runtime.artifact.stored import Stored

_fork = multiprocessing.get_context("fork")
_SECONDS = 60.0  # for one answer; an export takes some milliseconds
Write = Callable[[Stored, Path], None]


def attack(seed: int, found: Found, pairs: int = 100) -> None:
    """Let pairs of writers race, in every way that there is."""
    plain, mirrored = pair()
    _race(found, "exports", (plain, mirrored), _export, pairs)
    if seed % 2 == 0:
        both = (plain, mirrored)
        _race(found, "copies over one file", both, _copy, pairs // 4, refusals=True)
        _race(found, "copies that truncate it", both, _truncate_and_copy, pairs // 4, refusals=True)


def _race(
    found: Found,
    what: str,
    libraries: Sequence[Stored],
    write: Write,
    pairs: int,
    refusals: bool = False,
) -> None:
    """Race writers of two libraries, with a loader beside them, which may be refused or not."""
    with contextlib.ExitStack() as open_now:
        folder = Path(open_now.enter_context(tempfile.TemporaryDirectory()))
        path = stored.write(libraries[0], folder / "mask.so")
        writers = [open_now.enter_context(_writer(each, path, write)) for each in libraries]
        loader, ready = open_now.enter_context(_loader(path, refusals))
        ready.wait(_SECONDS)
        for number in range(pairs):
            for writer in writers:
                writer.send(True)
            for writer in writers:
                if problem := _answer(writer):
                    found.failed(f"{what}: pair {number}: an exporter was told {problem}")
            found.tried(f"pairs of {what}")
            if problem := _state(path, refusals):
                found.failed(f"{what}: after pair {number} {problem}")
                stored.write(libraries[0], path)
        loader.send(True)
        loads, refused, problems = loader.recv() if loader.poll(_SECONDS) else (0, 0, ["it hangs"])
        found.tried(f"loads beside {what}", loads)
        if refusals:
            found.tried(f"refusals beside {what}", refused)
        for problem in problems:
            found.failed(f"{what}: a loader beside them: {problem}")
        names = sorted(each.name for each in folder.iterdir())
        if names != FILES:
            found.failed(f"{what}: the folder holds {', '.join(names)}")


def _state(path: Path, refusals: bool) -> str:
    """What is wrong with the artifact after a pair; empty if nothing is."""
    try:
        if problem := judged(te_select.load(path)):
            return problem
        parse(path.with_suffix(".json").read_bytes(), "mask.json")  # which only exports write
    except ArtifactError as error:
        return "" if refusals else f"the artifact cannot be loaded: {error}"
    return ""


def _export(library: Stored, path: Path) -> None:
    stored.write(library, path)


def _copy(library: Stored, path: Path) -> None:
    """Write over the file's bytes, as ``dd conv=notrunc`` does."""
    with path.open("r+b") as file:
        file.write(library.image)
        file.truncate()


def _truncate_and_copy(library: Stored, path: Path) -> None:
    """Empty the file first, as ``cp`` does."""
    with path.open("wb") as file:
        file.write(library.image)


@contextlib.contextmanager
def _writer(library: Stored, path: Path, write: Write) -> Iterator[Connection]:
    """A process that writes the library whenever it is told to, and answers with its error."""

    def work(connection: Connection) -> None:
        while connection.recv():
            try:
                write(library, path)
                connection.send("")
            except Exception as error:  # an exporter must never fail because of another one
                connection.send(f"{type(error).__name__}: {one_line(str(error))}")

    ours, theirs = _fork.Pipe()
    process = _fork.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours
    finally:
        process.kill()
        process.join()


def _answer(writer: Connection) -> str:
    answer: str = writer.recv() if writer.poll(_SECONDS) else "nothing: it hangs"
    return answer


@contextlib.contextmanager
def _loader(path: Path, refusals: bool) -> Iterator[tuple[Connection, Event]]:
    """A process that loads until it is told to stop; it answers with a count and its failures."""
    ready = _fork.Event()

    def work(connection: Connection) -> None:
        loads = refused = 0
        problems: list[str] = []
        first: dict[str, te_select.Kernel | te_select.Library] = {}
        while not connection.poll():
            try:
                loaded = te_select.load(path)
                loads += 1
                problem = judged(first.setdefault(str(type(loaded)), loaded)) or judged(loaded)
            except ArtifactError as error:
                refused += 1
                problem = "" if refusals and "\n" not in str(error) else f"refused: {error}"
            except Exception:  # any other error is a failure
                problem = traceback.format_exc()
            if problem:
                problems.append(one_line(problem))
            ready.set()
        connection.send((loads, refused, problems[:5]))

    ours, theirs = _fork.Pipe()
    process = _fork.Process(target=work, args=(theirs,), daemon=True)
    process.start()
    try:
        yield ours, ready
    finally:
        process.kill()
        process.join()
