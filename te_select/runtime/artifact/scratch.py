"""Temporary folders that have room, or an error that names the folder without room.

If an object file cannot be written, LLVM ends the process, and a C compiler names a file that
nobody knows. So the room is checked before they run.

The folder that a killed process has left is removed by the next process that makes one
(`te_select.runtime.artifact.temporary`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from te_select.errors import ArtifactError, caught, suppress
from te_select.runtime.artifact import temporary

ROOM = 1 << 20  # bytes; the objects, the stub and the library of one kernel take a quarter of it
KERNEL_ROOM = 1 << 16  # bytes for each further kernel; it took 15 KB with a hundred kernels
_ADVICE = "free some room, or set TMPDIR to another folder"

_held: dict[Path, tuple[int, int]] = {}
"""The file descriptors that lock folders, and the processes that made the folders."""
_cleared: set[Path] = set()


class NoRoomError(ArtifactError):
    """No temporary folder has enough room. This says nothing about a kernel."""


@contextlib.contextmanager
def folder(room: int = ROOM) -> Iterator[Path]:
    """Make a temporary folder, which is removed at the end.

    Parameters
    ----------
    room
        Bytes for which it must have room; 0 for a folder that holds only links.

    Yields
    ------
    Path
        The folder.

    Raises
    ------
    NoRoomError
        If no folder can be made, or there is not enough room.
    """
    made = make(room)
    try:
        yield made
    finally:
        remove(made)


def make(room: int = ROOM) -> Path:
    """Make a temporary folder, as `folder` does, for the caller to `remove`."""
    try:
        parent = _parent()
        made, handle = temporary.make(parent, _create, temporary.VISIBLE)
    except caught(OSError) as error:  # the error's text lists the folders that Python has tried
        where = "" if error.filename is None else f": {error.filename}"
        raise NoRoomError(
            f"no temporary folder can be made: {error.strerror or error}{where}; {_ADVICE}"
        ) from error
    _held[made] = handle, os.getpid()
    if parent not in _cleared:
        _cleared.add(parent)
        with suppress(OSError):
            temporary.clear(parent, temporary.VISIBLE)
    try:
        if room:
            _reserve(made.joinpath("room"), room)
    except caught(OSError) as error:
        remove(made)
        raise NoRoomError(
            f"{made.parent} has no room for {-(-room // 1024)} KiB of temporary files: "
            f"{error.strerror or error}; {_ADVICE}"
        ) from error
    return made


def remove(made: Path) -> None:
    """Remove a folder that `make` has made, unless this is a forked child of its maker."""
    handle, owner = _held.get(made, (-1, -1))
    if owner == os.getpid():
        with suppress(OSError):
            shutil.rmtree(made)
        del _held[made]
        os.close(handle)


def _parent() -> Path:
    """Where temporary files go: to ``TMPDIR`` even if it is full, as a C compiler uses it then."""
    wanted = os.environ.get("TMPDIR", "")
    if wanted and Path(wanted).is_dir() and os.access(wanted, os.W_OK | os.X_OK):
        return Path(wanted).absolute()
    return Path(tempfile.gettempdir())


def _create(path: Path) -> int:
    path.mkdir(0o700)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _reserve(path: Path, room: int) -> None:
    """Check that there is room, without writing so many bytes."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room)
    path.unlink()
