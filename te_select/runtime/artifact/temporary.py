"""Temporary files and folders, which the next process removes if their maker is killed.

No other file has a name like theirs, and their maker holds a lock on them. So one without a lock
was left behind by a process that was killed. Whoever makes the next one of its kind in the same
folder removes it: hidden files lie beside what they replace, folders in the folder of temporary
files. On a file system without locks, or whose locks do nothing, nothing is removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

from te_select.errors import caught, suppress
from te_select.runtime.artifact import files

VISIBLE = "te_select-"
HIDDEN = f".{VISIBLE}"
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_TRIES = 10  # to make something; nothing is taken for left behind so often
_DIGITS = re.compile(r"[0-9a-f]{16}")


def make(folder: Path, create: Callable[[Path], int], prefix: str) -> tuple[Path, int]:
    """Make a file or a folder of a new name.

    Parameters
    ----------
    folder
        Where to make it.
    create
        Creates it at a path, and returns a file descriptor of it.
    prefix
        `VISIBLE` or `HIDDEN`.

    Returns
    -------
    tuple of Path and int
        Its path, and the descriptor, which locks it until it is closed.
    """
    tries = 0
    while True:
        tries += 1
        path = folder.joinpath(f"{prefix}{secrets.token_hex(8)}")
        try:
            handle = create(path)
        except caught(FileNotFoundError):  # removed as left behind; or the folder takes no files
            if tries == _TRIES:
                raise
            continue
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
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
    probe, handle = make(folder, lambda path: os.open(path, NEW, 0o600), HIDDEN)
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
