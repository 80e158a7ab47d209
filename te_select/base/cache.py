"""The cache: libraries and parts of them, by a key of everything that they depend on.

One entry is one file, which is whole or not there (`te_select.base.atomic`). Who loses
a race replaces an entry by an equal one. Loading an entry runs its code, so the folder must belong
to the user, and nobody else may write into it. What an entry holds is checked by whoever reads it
(`te_select.runtime.artifact.stored`), and thrown away if it is damaged. Files that do not have the
name of an entry are not the cache's, and are left alone.
"""

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from te_select.base import atomic, on_disk, scratch
from te_select.errors import ArtifactError, caught, suppress, warn

FOLDER, SIZE = "TE_SELECT_CACHE_DIR", "TE_SELECT_CACHE_SIZE"
DEFAULT_MIB = 512  # a family takes 4 MiB
DIGITS = 24  # of a digest; 96 bits
_NAME = re.compile(rf"te_select-\w+-[0-9a-f]{{{DIGITS}}}\.so", re.ASCII)  # as `name_of` makes it
_Used = TypeVar("_Used")


class CacheError(ArtifactError):
    """The cache cannot be used."""


def folder() -> Path:
    """Where the cache lies: ``TE_SELECT_CACHE_DIR``, else in the user's cache folder."""
    wanted = os.environ.get(FOLDER)
    try:
        found = Path(wanted or on_disk.user_folder("XDG_CACHE_HOME", "~/.cache"))
        return found.expanduser().absolute()
    except caught(RuntimeError) as error:
        what = f"{FOLDER} is {wanted!r}" if wanted else "there is no cache folder"
        raise CacheError(f"{what}: {error}; expected a folder") from error


def limit() -> int:
    """The most bytes that the cache may have: ``TE_SELECT_CACHE_SIZE``, in MiB.

    Raises
    ------
    CacheError
        If that is not a whole number.
    """
    text = os.environ.get(SIZE, "").strip() or str(DEFAULT_MIB)
    if not (text.isascii() and text.isdigit() and len(text) < 16):  # noqa: PLR2004 - petabytes
        raise CacheError(f"{SIZE} is {text!r}; expected a whole number of MiB")
    return int(text) << 20


def name_of(what: str, digest: str) -> str:
    """The name of an entry: what it holds, as an identifier, and a digest of what it depends on."""
    return f"te_select-{what}-{digest}.so"


def path_of(name: str) -> Path:
    """Where an entry lies, whether it is there or not."""
    return folder().joinpath(name)


def read(name: str) -> bytes | None:
    """Read an entry; None if there is none that may be trusted.

    Parameters
    ----------
    name
        The name of the file.

    Returns
    -------
    bytes or None
        What the file holds. Whoever uses it checks it.
    """
    try:
        path = path_of(name)
        _check(path.parent)
        with on_disk.opened(path, "an entry", os.O_NOFOLLOW) as file:
            if not _is_mine(os.fstat(file.fileno())):
                return None
            data = file.read()
    except caught(OSError, ArtifactError):
        return None
    with suppress(OSError):  # when it was last used
        os.utime(path)
    return data


def taken(name: str, use: Callable[[bytes], _Used], *, damaged: bool = True) -> _Used | None:
    """What is made of an entry; None if that is an ArtifactError, and then a damaged one goes."""
    data = read(name)
    try:
        return None if data is None else use(data)
    except ArtifactError:
        if damaged:
            with suppress(OSError):
                path_of(name).unlink()
        return None


def write(name: str, data: bytes) -> Path:
    """Write an entry, and remove the least recently used ones if there are too many.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    CacheError
        If the folder is not the user's own, or cannot be written.
    """
    path = path_of(name)
    where = path.parent
    most = limit()
    if len(data) > most:
        raise CacheError(f"{name} has {len(data)} bytes, more than {SIZE} allows")
    try:
        if not on_disk.is_folder(where):
            where.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check(where)
        _shrink(most - len(data))
        atomic.replace_all({path: data}, mode=0o600)
    except CacheError:
        raise
    except caught(OSError, ArtifactError) as error:
        advice = f"set {FOLDER} to a folder that you may write"
        raise CacheError(f"{where} cannot be used: {error}; {advice}") from error
    return path


def keep(name: str, data: bytes) -> None:
    """Write an entry; if that fails, one warning in a process says so."""
    try:
        write(name, data)
    except CacheError as error:
        warn(f"te_select cannot keep what it has built: {error}", once="cache")


def problem() -> str:
    """Why the cache is not used, in one line; empty if it is."""
    try:
        limit()
        _check(folder())
    except caught(OSError, CacheError) as error:
        return "" if isinstance(error, FileNotFoundError) else str(error)  # a missing one is made
    return ""


def entries() -> dict[Path, os.stat_result]:
    """The files of the entries and what the system says of them, the most recently used first."""
    found = {}
    with suppress(OSError):
        for path in folder().iterdir():
            if _NAME.fullmatch(path.name):
                with suppress(OSError):
                    about = path.lstat()
                    if stat.S_ISREG(about.st_mode):
                        found[path] = about
    return dict(sorted(found.items(), key=lambda each: (-each[1].st_mtime, each[0].name)))


def clear() -> dict[Path, os.stat_result]:
    """Remove all entries, and what was left of writing some.

    Returns
    -------
    dict
        What was removed, as `entries` lists it.

    Raises
    ------
    CacheError
        If one cannot be removed.
    """
    removed = entries()
    try:
        for path in removed:
            path.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            scratch.remove(scratch.make_within(folder()))
    except caught(OSError) as error:
        raise CacheError(f"{folder()} cannot be cleared: {error.strerror or error}") from error
    return removed


def _is_mine(found: os.stat_result) -> bool:
    return found.st_uid in (os.geteuid(), 0) and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


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
    total = 0
    for path, about in entries().items():
        total += about.st_size
        if total > room:
            with suppress(OSError):
                path.unlink(missing_ok=True)
