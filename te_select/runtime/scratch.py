"""Temporary folders that have room, or an error that names the folder which has none.

LLVM ends the process where an object file cannot be written, and a C compiler blames a file that
nobody knows. So the room is asked for before they run.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from te_select.errors import ArtifactError

ROOM = 1 << 20  # bytes; the objects, the stub and the library of one kernel take a quarter of it
KERNEL_ROOM = 1 << 16  # bytes that another kernel takes; it was 15 KB where a hundred were linked
_ADVICE = "free some room, or set TMPDIR to another folder"


@contextlib.contextmanager
def folder(room: int = ROOM) -> Iterator[Path]:
    """Make a temporary folder, which is removed at the end.

    Parameters
    ----------
    room
        Bytes that it must have room for; 0 for a folder that is to hold links only.

    Yields
    ------
    Path
        The folder.

    Raises
    ------
    ArtifactError
        If no folder can be made, or there is not as much room.
    """
    made = make(room)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def make(room: int = ROOM) -> Path:
    """Make a temporary folder, as `folder` does, for the caller to remove."""
    try:
        made = Path(tempfile.mkdtemp(prefix="te_select-"))
    except OSError as error:  # its text lists the folders that Python has tried
        where = "" if error.filename is None else f": {error.filename}"
        raise ArtifactError(
            f"no temporary folder can be made: {error.strerror or error}{where}; {_ADVICE}"
        ) from error
    try:
        if room:
            _reserve(made / "room", room)
    except OSError as error:
        shutil.rmtree(made, ignore_errors=True)
        raise ArtifactError(
            f"{made.parent} has no room for {-(-room // 2**20)} MiB of temporary files: "
            f"{error.strerror or error}; {_ADVICE}"
        ) from error
    return made


def _reserve(path: Path, room: int) -> None:
    """Find out whether there is room, without writing it."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room)
    path.unlink()
