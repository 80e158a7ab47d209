"""Temporary folders, which the next process removes if their maker is killed.

Nothing else has a name like theirs, and their maker holds a lock on them. So one without a lock
was left behind by a process that was killed. Whoever makes the next one in the same place removes
it. On a file system without locks, or whose locks do nothing, nothing is removed; nor is what could
not be locked at another time, which has a longer name.

A folder has room, or an error names the one without room: if an object file cannot be written, LLVM
ends the process. So the room is checked before it runs.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from te_select.base import on_disk
from te_select.errors import ArtifactError, caught, suppress

ROOM = 1 << 20  # bytes; the objects, the stub and the library of one kernel take a quarter of it
KERNEL_ROOM = 1 << 16  # bytes for each further kernel; it took 15 KB with a hundred kernels
_NAME = re.compile(r"\.te_select-[0-9a-f]{16}")
# The file descriptors that lock folders, and the processes that made the folders.
_held: dict[Path, tuple[int, int]] = {}


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
        if on_disk.is_folder(made):
            raise
        raise NoRoomError(f"{made} was removed in use; set TMPDIR to another folder") from error
    finally:
        remove(made)


def make(room: int = ROOM) -> Path:
    """Make a temporary folder, as `folder` does, for the caller to `remove`."""
    try:
        os.close(os.open("/", os.O_RDONLY))  # tempfile would blame the folders
        tempfile.gettempdir().encode()
        with contextlib.ExitStack() as unless_done:
            made = make_within(Path(tempfile.gettempdir()))
            unless_done.callback(remove, made)
            if room:  # it is checked without writing so many bytes
                with tempfile.TemporaryFile(dir=made) as file:
                    os.posix_fallocate(file.fileno(), 0, room)
            unless_done.pop_all()
            return made
    except caught(UnicodeEncodeError) as error:
        raise NoRoomError(
            f"{tempfile.tempdir!r} is no path of text, which TVM expects; set TMPDIR to another "
            "folder"
        ) from error
    except caught(OSError) as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise NoRoomError(
                f"no temporary file can be opened: {error.strerror}; close some, or raise ulimit -n"
            ) from error
        raise NoRoomError(
            f"{tempfile.tempdir or 'the system'} does not take {room >> 10} KiB of temporary "
            f"files: {error.strerror or error}; free some room, or set TMPDIR to another folder"
        ) from error


def make_within(parent: Path) -> Path:
    """Make a hidden folder in another one, for the caller to `remove`; it may raise OSError."""
    while True:
        made = parent.joinpath(f".te_select-{secrets.token_hex(8)}")
        made.mkdir(0o700)
        with suppress(FileNotFoundError):  # removed as left behind, before it was opened
            handle = _open(made)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except caught(OSError):  # no locks here, or too many
                with suppress(OSError):
                    made = made.rename(f"{made}-unlocked")
            if on_disk.is_there(made):  # nobody has removed it before it was locked
                break
            os.close(handle)
    _held[made] = handle, os.getpid()
    with suppress(OSError):
        _clear(parent, made)
    return made


def remove(made: Path) -> None:
    """Remove a folder, unless this is a forked child of its maker."""
    handle, owner = _held.get(made, (-1, -1))
    if owner == os.getpid():
        with suppress(OSError):
            shutil.rmtree(made)
        del _held[made]
        os.close(handle)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _clear(parent: Path, own: Path) -> None:
    """Remove what killed processes have left in a folder, if it has locks, as on ``own``."""
    try:
        with _unlocked(own):
            return
    except caught(BlockingIOError):
        names = [path for path in parent.iterdir() if _NAME.fullmatch(path.name)]
    for path in names:
        with suppress(OSError), _unlocked(path):
            shutil.rmtree(path)


@contextlib.contextmanager
def _unlocked(path: Path) -> Iterator[None]:
    """Lock a folder of this user that nobody has locked; OSError if it is none."""
    handle = _open(path)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_uid != os.geteuid():
            raise PermissionError
        yield
    finally:
        os.close(handle)
