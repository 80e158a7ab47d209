"""The cache: libraries that were built, by a key of everything that they depend on.

One entry is one file, written under another name and renamed, so an entry is whole or not there.
Nothing depends on a lock: who loses a race replaces an entry by an equal one. Loading an entry runs
its code, so the folder must belong to the user, and nobody else may write into it. What an entry
holds is checked by whoever reads it (`te_select.runtime.stored`), and thrown away where it is
damaged.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from te_select.errors import ArtifactError
from te_select.runtime import user_folders

FOLDER, SIZE = "TE_SELECT_CACHE_DIR", "TE_SELECT_CACHE_SIZE"
DEFAULT_MIB = 512  # a family takes 4 MiB
_SUFFIX = ".so"
_TEMPORARY = ".te_select-"
_ABANDONED = 3600.0  # seconds after which a temporary file has no writer any more
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.so")
_warned = False


class CacheError(ArtifactError):
    """The cache cannot be used."""


@dataclass(frozen=True)
class Entry:
    """One file of the cache.

    Parameters
    ----------
    path
        The file.
    size
        Its bytes.
    used
        When it was last used, in seconds since 1970.
    """

    path: Path
    size: int
    used: float


def folder() -> Path:
    """Where the cache lies: ``TE_SELECT_CACHE_DIR``, else in the user's cache folder."""
    wanted = os.environ.get(FOLDER)
    try:
        return Path(wanted).expanduser().absolute() if wanted else user_folders.cache()
    except RuntimeError as error:
        what = f"{FOLDER} is {wanted!r}" if wanted else "there is no cache folder"
        raise CacheError(f"{what}: {error}; expected a folder") from error


def limit() -> int:
    """The most bytes that the cache may have: ``TE_SELECT_CACHE_SIZE``, in MiB.

    Raises
    ------
    CacheError
        If that is no whole number.
    """
    text = os.environ.get(SIZE, "").strip()
    if not text:
        return DEFAULT_MIB << 20
    if not (text.isascii() and text.isdigit()):
        raise CacheError(f"{SIZE} is {text!r}; expected a whole number of MiB")
    return int(text) << 20


def read(name: str) -> bytes | None:
    """Read an entry; None where there is none that may be trusted.

    Parameters
    ----------
    name
        The name of the file.

    Returns
    -------
    bytes or None
        What the file holds. Whoever uses it checks it, and calls `discard` where it is damaged.
    """
    try:
        path = folder() / name
        _check(path.parent)
        with open(path, "rb", opener=_open_regular) as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or not _is_mine(found):
                return None
            data = file.read()
    except (OSError, CacheError):
        return None
    with contextlib.suppress(OSError):  # when it was last used
        os.utime(path)
    return data


def write(name: str, data: bytes) -> Path:
    """Write an entry, and remove the least recently used ones where there are too many.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CacheError
        If the folder is not the user's own, or cannot be written.
    """
    where = folder()
    temporary = where / f".{name}{_TEMPORARY}{secrets.token_hex(8)}"
    most = limit()
    if len(data) > most:
        raise CacheError(f"{name} has {len(data)} bytes, more than {SIZE} allows")
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(where)
        _remove_abandoned(where)
        _shrink(most - len(data))
        try:
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            temporary.replace(where / name)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise CacheError(f"{where} cannot be written: {error.strerror or error}") from error
    return where / name


def keep(name: str, data: bytes) -> None:
    """Write an entry; where that fails, one warning in a process says so."""
    global _warned  # noqa: PLW0603 - once in a process
    try:
        write(name, data)
    except CacheError as error:
        if not _warned:
            _warned = True
            text = f"te_select cannot keep what it has built: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=3)


def discard(name: str) -> None:
    """Remove an entry, which is damaged."""
    with contextlib.suppress(OSError):
        (folder() / name).unlink()


def problem() -> str:
    """Why the cache is not used, in one line; empty where it is."""
    try:
        limit()
        _check(folder())
    except FileNotFoundError:
        return ""  # it is made when it is needed
    except (OSError, CacheError) as error:
        return str(error)
    return ""


def entries() -> list[Entry]:
    """The entries, the most recently used first."""
    found = []
    with contextlib.suppress(OSError):
        for path in folder().iterdir():
            if _NAME.fullmatch(path.name):
                with contextlib.suppress(OSError):
                    about = path.stat()
                    found.append(Entry(path, about.st_size, about.st_mtime))
    return sorted(found, key=lambda entry: (-entry.used, entry.path.name))


def clear() -> list[Entry]:
    """Remove all entries, and what was left of writing some.

    Returns
    -------
    list[Entry]
        What was removed.

    Raises
    ------
    CacheError
        If one cannot be removed.
    """
    removed = []
    try:
        for entry in entries():
            entry.path.unlink(missing_ok=True)
            removed.append(entry)
        for path in _temporaries(folder()):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise CacheError(f"{folder()} cannot be cleared: {error.strerror or error}") from error
    return removed


def _open_regular(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)


def _is_mine(found: os.stat_result) -> bool:
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & _OTHERS_MAY_WRITE


def _check(where: Path) -> None:
    """Refuse a folder into which others may put code."""
    found = where.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise CacheError(f"{where} is no folder; set {FOLDER} to one")
    if not _is_mine(found):
        raise CacheError(
            f"{where} may be written by others, and what lies in it would be run; expected a "
            f"folder of your own with mode 0700 (chmod 700), or another in {FOLDER}"
        )


def _shrink(room: int) -> None:
    """Remove the least recently used entries, until the others take no more than ``room``."""
    kept = entries()
    total = sum(entry.size for entry in kept)
    while kept and total > room:
        last = kept.pop()
        with contextlib.suppress(OSError):
            last.path.unlink(missing_ok=True)
        total -= last.size


def _temporaries(where: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        yield from (path for path in where.iterdir() if _TEMPORARY in path.name)


def _remove_abandoned(where: Path) -> None:
    """Remove the temporary files of writers that were killed."""
    before = time.time() - _ABANDONED
    for path in _temporaries(where):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()
