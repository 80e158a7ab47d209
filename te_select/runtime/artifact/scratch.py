"""Temporary files and folders, which the next process removes if their maker is killed.

No other file has a name like theirs, and their maker holds a lock on them. So one without a lock
was left behind by a process that was killed. Whoever makes the next one of its kind in the same
folder removes it: hidden files lie beside what they replace, folders in the folder of temporary
files. On a file system without locks, or whose locks do nothing, nothing is removed; nor is what
could not be locked at another time, which has a longer name.

A folder has room, or an error names the one without room. If an object file cannot be written, LLVM
ends the process, and a C compiler names a file that nobody knows. So the room is checked before
they run.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from te_select.errors import ArtifactError, caught, suppress
from te_select.runtime.artifact import files

ROOM = 1 << 20  # bytes; the objects, the stub and the library of one kernel take a quarter of it
KERNEL_ROOM = 1 << 16  # bytes for each further kernel; it took 15 KB with a hundred kernels
_ADVICE = "free some room, or set TMPDIR to another folder"
VISIBLE = "te_select-"
HIDDEN = f".{VISIBLE}"
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_TRIES = 10  # to make something; nothing is taken for left behind so often
_DIGITS = re.compile(r"[0-9a-f]{16}")
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
        If no folder can be made, there is not enough room, or another program has removed it.
    """
    made = make(room)
    try:
        yield made
    except caught(Exception) as error:
        if files.is_folder(made):
            raise
        raise NoRoomError(f"{made} was removed in use; set TMPDIR to another folder") from error
    finally:
        remove(made)


def make(room: int = ROOM) -> Path:
    """Make a temporary folder, as `folder` does, for the caller to `remove`."""
    try:
        parent = _parent()
        made, handle = create(parent, _create, VISIBLE)
    except caught(OSError) as error:  # the error's text lists the folders that Python has tried
        where = "" if error.filename is None else f": {error.filename}"
        raise NoRoomError(
            f"no temporary folder can be made: {error.strerror or error}{where}; {_ADVICE}"
        ) from error
    _held[made] = handle, os.getpid()
    if parent not in _cleared:
        _cleared.add(parent)
        with suppress(OSError):
            clear(parent, VISIBLE)
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


def create(folder: Path, opened: Callable[[Path], int], prefix: str) -> tuple[Path, int]:
    """Make a file or a folder of a new name.

    Parameters
    ----------
    folder
        Where to make it.
    opened
        Makes it at a path, and returns a file descriptor of it.
    prefix
        `VISIBLE` or `HIDDEN`.

    Returns
    -------
    tuple of Path and int
        Its path, and the descriptor, which locks it until it is closed.
    """
    tries = _TRIES
    while True:
        path = folder.joinpath(f"{prefix}{secrets.token_hex(8)}")
        try:
            handle = opened(path)
        except caught(FileNotFoundError):  # removed as left behind; or the folder takes no files
            if not (tries := tries - 1):
                raise
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except caught(OSError):  # no locks here, or too many
            with suppress(OSError):
                path = path.rename(f"{path}-unlocked")
        if files.is_there(path):  # nobody has removed it as left behind before it was locked
            return path, handle
        os.close(handle)


def clear(folder: Path, prefix: str) -> None:
    """Remove what killed processes have left in a folder; raises OSError if it cannot be read.

    Parameters
    ----------
    folder
        The folder.
    prefix
        `VISIBLE` for folders, or `HIDDEN` for files. Others are not looked at.
    """
    probe, handle = create(folder, lambda path: os.open(path, NEW, 0o600), HIDDEN)
    try:
        _remove_unlocked(probe, is_folder=False)
        if files.is_there(probe):  # else locks do nothing here
            for path in folder.iterdir():
                if path.name.startswith(prefix) and _DIGITS.fullmatch(path.name, len(prefix)):
                    _remove_unlocked(path, is_folder=prefix == VISIBLE)
    finally:
        probe.unlink(missing_ok=True)
        os.close(handle)


def _remove_unlocked(path: Path, *, is_folder: bool) -> None:
    """Remove a file, or a folder, of this user that nobody has locked."""
    with suppress(OSError), contextlib.ExitStack() as closing:
        # A pipe is not waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        closing.callback(os.close, handle)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found = os.fstat(handle)
        if found.st_uid != os.geteuid():
            return
        if is_folder and stat.S_ISDIR(found.st_mode):
            shutil.rmtree(path)
        elif not is_folder and stat.S_ISREG(found.st_mode):
            path.unlink()
