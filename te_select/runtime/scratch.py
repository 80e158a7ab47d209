"""Temporary folders that have room, or an error that names the folder without room.

If an object file cannot be written, LLVM ends the process, and a C compiler names a file that
nobody knows. So the room is checked before they run.

A folder is locked by the process that made it, as long as that lives, and names it. So a folder
without a lock, of no process that is there, was left by a killed one, and the next process that
makes a folder removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from te_select.errors import ArtifactError

ROOM = 1 << 20  # bytes; the objects, the stub and the library of one kernel take a quarter of it
KERNEL_ROOM = 1 << 16  # bytes for each further kernel; it took 15 KB with a hundred kernels
PREFIX = "te_select-scratch-"
_ADVICE = "free some room, or set TMPDIR to another folder"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_held: dict[Path, tuple[int, int]] = {}
"""The file descriptors that lock folders, and the processes that made the folders."""


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
        parent = Path(tempfile.gettempdir())
        with contextlib.suppress(OSError):
            _clear(parent)
        made = _locked_folder()
    except OSError as error:  # the error's text lists the folders that Python has tried
        where = "" if error.filename is None else f": {error.filename}"
        raise NoRoomError(
            f"no temporary folder can be made: {error.strerror or error}{where}; {_ADVICE}"
        ) from error
    try:
        if room:
            _reserve(made / "room", room)
    except OSError as error:
        remove(made)
        raise NoRoomError(
            f"{made.parent} has no room for {-(-room // 2**20)} MiB of temporary files: "
            f"{error.strerror or error}; {_ADVICE}"
        ) from error
    return made


def remove(made: Path) -> None:
    """Remove a folder that `make` has made, unless this is a forked child of its maker."""
    handle, owner = _held.get(made, (-1, -1))
    if owner == os.getpid():
        shutil.rmtree(made, ignore_errors=True)
        del _held[made]
        os.close(handle)


def _locked_folder() -> Path:
    while True:
        made = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # removed as left behind
            handle = os.open(made, _FOLDER)
            try:
                _lock(handle)
                if made.exists():
                    _held[made] = handle, os.getpid()
                    return made
            finally:
                if made not in _held:
                    os.close(handle)


def _lock(handle: int) -> None:
    """Lock a folder; on a file system without locks, no folder counts as left behind."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        return


@functools.cache
def _clear(parent: Path) -> None:
    """Remove the folders that killed processes of this user have left, once in a process."""
    for left in parent.glob(f"{PREFIX}*"):
        if _maker_lives(left):
            continue
        with contextlib.suppress(OSError):
            handle = os.open(left, _FOLDER)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(handle).st_uid == os.geteuid():
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)


def _maker_lives(made: Path) -> bool:
    """Whether the process that a folder names is there: locks may do nothing, as on some of NFS."""
    number = made.name.removeprefix(PREFIX).partition("-")[0]
    try:
        os.kill(int(number), 0)
    except (ValueError, ProcessLookupError):
        return False
    except (OSError, OverflowError):  # it is another user's
        return True
    return True


def _reserve(path: Path, room: int) -> None:
    """Check that there is room, without writing so many bytes."""
    with path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room)
    path.unlink()
