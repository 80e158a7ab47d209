"""Files that a user names: their paths are checked, and only regular files are read."""

import os
import platform
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from te_select.errors import ArtifactError, caught, suppress

LARGEST = 1 << 28  # bytes of a file that is read whole


def library_path(path: str | os.PathLike[str]) -> Path:
    """Check the path of a shared library.

    Raises
    ------
    ArtifactError
        If it is not a path, not valid text, or does not end in .so.
    """
    try:
        checked = Path(path)
        if b"\0" in str(checked).encode("utf-8"):
            raise ValueError("no file has such a name")
    except caught(TypeError, ValueError) as error:  # not a path, or bytes that are not text
        raise ArtifactError(f"{path!r} is no path of text; expected one ending in .so") from error
    if checked.suffix != ".so":
        raise ArtifactError(f"{path} does not end in .so, as the path of an artifact must")
    return checked


def for_machine(path: Path, machine: str) -> Path:
    """The path of the library for one of several machines, such as mask.x86_64.so for mask.so."""
    return path.with_name(f"{path.stem}.{machine}.so")


def library_here(path: str | os.PathLike[str]) -> Path:
    """The path of a library to read: if nothing is there, that of the one for this machine.

    Raises
    ------
    ArtifactError
        If it is not a path as `library_path` takes it, or there are libraries for other machines
        only.
    """
    checked = library_path(path)
    if not is_missing(checked):
        return checked
    own = for_machine(checked, platform.machine())
    if is_there(own):
        return own
    with suppress(OSError):
        names = sorted(each.name for each in checked.parent.iterdir() if each.suffix == ".so")
        if others := [name for name in names if name.startswith(f"{checked.stem}.")]:
            raise ArtifactError(
                f"{path} is missing, and so is {own.name} for this machine; there are only "
                f"{', '.join(others)}"
            )
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


def user_folder(variable: str, by_default: str) -> Path:
    """A folder of the user's, by the XDG base directory specification; RuntimeError if no home."""
    root = Path(os.environ.get(variable, "").strip()).expanduser()
    if not root.is_absolute():  # the specification says to ignore it
        root = Path(by_default).expanduser()
    return root / "te-select"


def is_folder(path: Path) -> bool:
    """Whether a folder is there; False if that cannot be found out, as with a name too long."""
    found = _status(path)
    return isinstance(found, os.stat_result) and stat.S_ISDIR(found.st_mode)


def is_there(path: Path) -> bool:
    """Whether something is there; False if that cannot be found out: writing will say why."""
    return isinstance(_status(path), os.stat_result)


def is_missing(path: Path) -> bool:
    """Whether nothing is there; False if that cannot be found out: reading will say why."""
    return isinstance(_status(path), (FileNotFoundError, NotADirectoryError))


def _status(path: Path) -> os.stat_result | Exception:
    """What the system says of a path; Python's own functions lose errors of handlers."""
    try:
        return path.stat()
    except caught(OSError, ValueError) as error:
        return error


def opened(path: Path, what: str, flags: int = 0) -> BinaryIO:
    """Open a regular file for reading. Nothing is waited for, as a pipe would be.

    Parameters
    ----------
    path
        The file.
    what
        What was expected, for messages.
    flags
        Of ``os.open``, besides.

    Raises
    ------
    ArtifactError
        If it is missing, not a regular file, or cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
    except caught(FileNotFoundError) as error:
        raise ArtifactError(f"{path} is missing; expected {what}") from error
    except caught(OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArtifactError(f"{path} cannot be read: {reason}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ArtifactError(f"{path} is not a regular file; expected {what}")
    return os.fdopen(handle, "rb")


def read(path: Path, what: str = "the shared library") -> bytes:
    """Read a regular file, which is opened once.

    Raises
    ------
    ArtifactError
        As `opened`, or if it is larger than `LARGEST` or the memory, or cannot be read.
    """
    with opened(path, what) as file:
        if os.fstat(file.fileno()).st_size > LARGEST:
            raise ArtifactError(f"{path} is larger than {LARGEST >> 20} MiB; expected {what}")
        try:
            return file.read()
        except caught(MemoryError) as error:
            raise ArtifactError(f"{path} is larger than the memory; expected {what}") from error
        except caught(OSError) as error:
            raise ArtifactError(f"{path} cannot be read: {error.strerror or error}") from error
