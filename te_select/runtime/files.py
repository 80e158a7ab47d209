"""Files of an artifact: read if they are regular files, and replaced as a whole.

A file is written under a temporary name beside the file that it replaces, brought to the disk, and
renamed. Its writer holds a lock on it. So the next writer can tell a file that a killed process has
left behind: nobody holds a lock on it. The next writer removes such files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from te_select.errors import ArtifactError

_MARK = ".te_select-"  # in the names of temporary files, before a random number
_EXECUTABLE, _ORDINARY = 0o777, 0o666  # permissions before the umask


def library_path(path: str | os.PathLike[str]) -> Path:
    """Check the path of a shared library.

    Raises
    ------
    ArtifactError
        If it is not a path, not valid text, or does not end in .so.
    """
    try:
        checked = Path(path)
        usable = b"\0" not in str(checked).encode("utf-8")
    except (TypeError, ValueError):  # not a path, or bytes that are not text
        usable = False
    if not usable:
        raise ArtifactError(f"{path!r} is not a path of valid text; expected one ending in .so")
    if checked.suffix != ".so":
        raise ArtifactError(f"{path} does not end in .so, as the path of an artifact must")
    return checked


def new_library_path(path: str | os.PathLike[str]) -> Path:
    """Check the path of a shared library that is to be written.

    Raises
    ------
    ArtifactError
        If it is not a path as `library_path` takes it, or Python would import the file in the
        place of a module of its standard library.
    """
    checked = library_path(path)
    module = checked.name.partition(".")[0]  # Python takes select.abi3.so as well
    if module in sys.stdlib_module_names:
        raise ArtifactError(
            f"{path} would be imported by Python in the place of its own module {module}; expected "
            f"another name, such as {checked.with_name(f'{module}_kernels.so')}"
        )
    return checked


def is_folder(path: Path) -> bool:
    """Whether a folder is there; False if that cannot be found out, as with a name too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_there(path: Path) -> bool:
    """Whether something is there; False if that cannot be found out: writing will say why."""
    try:
        return path.exists()
    except OSError:
        return False


def is_missing(path: Path) -> bool:
    """Whether nothing is there; False if that cannot be found out: reading will say why."""
    try:
        return not path.exists()
    except OSError:
        return False


def read(path: Path, what: str = "the shared library") -> bytes:
    """Read a file, which is opened once.

    Raises
    ------
    ArtifactError
        If it is missing, not a regular file (reading a pipe would wait), larger than the memory,
        or cannot be read.
    """
    try:
        with open(path, "rb", opener=_open_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ArtifactError(f"{path} is not a regular file; expected {what}")
            return file.read()
    except MemoryError as error:
        raise ArtifactError(f"{path} is larger than the memory; expected {what}") from error
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing; expected {what}") from error
    except IsADirectoryError as error:
        raise ArtifactError(f"{path} is not a regular file; expected {what}") from error
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.ENODEV):  # a socket, or a device without a driver
            raise ArtifactError(f"{path} is not a regular file; expected {what}") from error
        raise ArtifactError(f"{path} cannot be read: {error.strerror or error}") from error


def replace(path: Path, data: bytes) -> None:
    """Write a file as `replace_all` does."""
    replace_all({path: data})


def replace_all(files: Mapping[Path, bytes]) -> None:
    """Write temporary files, and rename all at the end; a loaded library keeps its old file.

    Parameters
    ----------
    files
        The bytes of each file, in the order in which they appear. Missing folders are made.

    Raises
    ------
    ArtifactError
        If one cannot be written; then none of them is replaced.
    """
    with contextlib.ExitStack() as temporaries:
        written = []
        for path, data in files.items():
            with _explained(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                _remove_left_behind(path)
                written.append((temporaries.enter_context(_temporary(path, data)), path))
        for temporary, path in written:
            with _explained(path):
                temporary.replace(path)
        for folder in {path.parent for path in files}:
            with contextlib.suppress(OSError):  # the files are there; some systems sync no folders
                sync_folder(folder)


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
            with path.open("wb") as file:
                file.write(data)
            return
        target = path.resolve()
    replace(target, data)


@contextlib.contextmanager
def _temporary(path: Path, data: bytes) -> Iterator[Path]:
    """A file beside ``path`` with these bytes, on the disk, locked while this process lives."""
    name, handle = _new_beside(path)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            yield name
    finally:
        name.unlink(missing_ok=True)


def _new_beside(path: Path) -> tuple[Path, int]:
    mode = _EXECUTABLE if path.suffix == ".so" else _ORDINARY
    while True:
        name = path.with_name(f".{path.name}{_MARK}{secrets.token_hex(4)}")
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with contextlib.suppress(OSError):  # a file system without locks; nothing is removed there
            fcntl.flock(handle, fcntl.LOCK_EX)
        if name.exists():  # nobody removed it as left behind before it was locked
            return name, handle
        os.close(handle)


def _remove_left_behind(path: Path) -> None:
    """Remove the temporary files of writers of ``path`` that were killed."""
    for name in path.parent.glob(f".{_escaped(path.name)}{_MARK}*"):
        with contextlib.suppress(OSError):
            handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                name.unlink()
            finally:
                os.close(handle)


def _escaped(name: str) -> str:
    """A name with its wildcards escaped for a glob."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file without waiting; a pipe without a writer is opened at once, and refused later."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def sync_folder(folder: Path) -> None:
    """Bring a folder's list of files to the disk; raises OSError if the system cannot."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror or error} (folder {path.parent})"
        ) from error
