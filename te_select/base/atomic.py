"""Files that appear as a whole: written beside the file that they replace, synced, and renamed."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from te_select.base import on_disk, scratch
from te_select.errors import ArtifactError, caught, suppress


def replace(path: Path, data: bytes) -> None:
    """Write a file as `replace_all` does."""
    replace_all({path: data})


def replace_all(contents: Mapping[Path, bytes], mode: int | None = None) -> None:
    """Write temporary files, and rename all at the end; a loaded library keeps its old file.

    A file that is replaced keeps its permissions.

    Parameters
    ----------
    contents
        The bytes of each file, in the order in which they appear. Missing folders are made.
    mode
        Permissions before the umask, or None: those of the file that is replaced, or otherwise of
        a library or of an ordinary file.

    Raises
    ------
    ArtifactError
        If one cannot be written; then none of them is replaced. Only if the system refuses to
        rename over a file, which is immutable or on which something is mounted, those before it
        are.
    """
    with contextlib.ExitStack() as stack:
        written = []
        for path, data in contents.items():
            with _explained(path):
                old = _check_replaceable(path)
                if not on_disk.is_folder(path.parent):
                    path.parent.mkdir(parents=True, exist_ok=True)
                folder = scratch.make_within(path.parent)
                stack.callback(scratch.remove, folder)
                _write(folder / "new", data, mode or (0o777 if path.suffix == ".so" else 0o666))
                if mode is None and old is not None:
                    (folder / "new").chmod(old)
                written.append((folder / "new", path))
        for name, path in written:
            with _explained(path):
                name.replace(path)
        for folder in {path.parent for path in contents}:
            with suppress(OSError):  # the files are there; some systems sync no folders
                sync_folder(folder)


def check_folder(path: Path) -> None:
    """Check that a file can be made where a path leads.

    Raises
    ------
    ArtifactError
        If it cannot, or a folder is there.
    """
    with _explained(path):
        _check_replaceable(path)
        found = next(each for each in path.absolute().parents if not on_disk.is_missing(each))
        scratch.remove(scratch.make_within(found))


def remove(path: Path) -> None:
    """Remove a file; one that is gone is no error.

    Raises
    ------
    ArtifactError
        If it cannot be removed.
    """
    with _explained(path):
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of files to the disk; raises OSError if the system cannot."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(name: Path, data: bytes, mode: int) -> None:
    """Write a new file, and bring it to the disk."""
    with open(name, "xb", opener=lambda path, flags: os.open(path, flags, mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _check_replaceable(path: Path) -> int | None:
    """The permissions of the file at a path, if one is there; what a rename would refuse raises."""
    with suppress(FileNotFoundError):
        found = path.lstat().st_mode
        if stat.S_ISDIR(found):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if stat.S_ISREG(found):
            return found & 0o777
    return None


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except caught(OSError) as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror or error} (folder {path.parent})"
        ) from error
