"""Files that appear as a whole: written beside the file that they replace, synced, and renamed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from te_select.errors import ArtifactError, caught, suppress
from te_select.runtime.artifact import files, scratch

_EXECUTABLE, _ORDINARY = 0o777, 0o666  # permissions before the umask


def replace(path: Path, data: bytes) -> None:
    """Write a file as `replace_all` does."""
    replace_all({path: data})


def replace_all(contents: Mapping[Path, bytes], mode: int | None = None) -> None:
    """Write temporary files, and rename all at the end; a loaded library keeps its old file.

    Parameters
    ----------
    contents
        The bytes of each file, in the order in which they appear. Missing folders are made.
    mode
        Permissions before the umask; None for those of a library or of an ordinary file.

    Raises
    ------
    ArtifactError
        If one cannot be written; then none of them is replaced. Only if the system refuses to
        rename over a file, which is immutable or on which something is mounted, those before it
        are.
    """
    folders = {path.parent for path in contents}
    with contextlib.ExitStack() as temporaries:
        written = []
        for path, data in contents.items():
            with _explained(path):
                _check_replaceable(path)
                if not files.is_folder(path.parent):
                    path.parent.mkdir(parents=True, exist_ok=True)
                written.append((temporaries.enter_context(_temporary(path, data, mode)), path))
        for name, path in written:
            with _explained(path):
                name.replace(path)
        for folder in folders:
            with suppress(OSError):  # the files are there; some systems sync no folders
                sync_folder(folder)
    for folder in folders:
        with suppress(OSError):
            scratch.clear(folder, scratch.HIDDEN)


def check_folder(path: Path) -> None:
    """Check that a file can be made where a path leads.

    Raises
    ------
    ArtifactError
        If it cannot.
    """
    folder = files.check_parent(path)
    with _explained(path), _temporary(folder / path.name, None, None):
        pass


def remove(path: Path) -> None:
    """Remove a file; one that is gone is no error.

    Raises
    ------
    ArtifactError
        If it cannot be removed.
    """
    with _explained(path):
        path.unlink(missing_ok=True)


def write_output(path: Path, data: bytes) -> None:
    """Write an output of the user's choice; a regular file is replaced as a whole.

    Raises
    ------
    ArtifactError
        If it cannot be written.
    """
    with _explained(path):
        if path.exists() and not path.is_file():  # such as /dev/stdout, which must stay
            path.write_bytes(data)
            return
        target = path.resolve()
    replace(target, data)


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of files to the disk; raises OSError if the system cannot."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _temporary(path: Path, data: bytes | None, mode: int | None) -> Iterator[Path]:
    """A file beside ``path``, locked while this process lives; with bytes, if any, on the disk."""
    if mode is None:
        mode = _EXECUTABLE if path.suffix == ".so" else _ORDINARY
    # Its name is not made of the path's, which may be as long as a name can be.
    name, handle = scratch.create(
        path.parent, lambda new: os.open(new, scratch.NEW, mode), scratch.HIDDEN
    )
    try:
        if data is not None:
            with os.fdopen(os.dup(handle), "wb") as file:  # closed before the rename, and may fail
                file.write(data)
                file.flush()
                os.fsync(handle)
        yield name
    finally:
        with suppress(OSError):
            name.unlink(missing_ok=True)
        os.close(handle)


def _check_replaceable(path: Path) -> None:
    """Find out what a rename would refuse, while nothing has been renamed."""
    files.check_parent(path)
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(path.lstat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except caught(OSError) as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror or error} (folder {path.parent})"
        ) from error
