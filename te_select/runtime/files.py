"""Files of an artifact: read if they are regular files, and replaced as a whole."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from te_select.errors import ArtifactError


def library_path(path: str | os.PathLike[str]) -> Path:
    """Check the path of a shared library.

    Raises
    ------
    ArtifactError
        If it is no path, or does not end in .so.
    """
    try:
        checked = Path(path)
        usable = b"\0" not in os.fsencode(checked)
    except (TypeError, ValueError):  # no path, or one that the file system cannot spell
        usable = False
    if not usable:
        raise ArtifactError(f"{path!r} is not a path; expected one that ends in .so")
    if checked.suffix != ".so":
        raise ArtifactError(f"{path} does not end in .so, as the path of an artifact must")
    return checked


def is_folder(path: Path) -> bool:
    """Whether a folder is there; False also where nobody can tell, as of a name too long."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_missing(path: Path) -> bool:
    """Whether nothing is there; False also where nobody can tell: reading it says why."""
    try:
        return not path.exists()
    except OSError:
        return False


def read(path: Path, what: str = "the shared library") -> bytes:
    """Read a file.

    Raises
    ------
    ArtifactError
        If it is missing, not a regular file (reading a pipe would wait), or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ArtifactError(f"{path} is not a regular file; expected {what}")
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ArtifactError(f"{path} is missing, {what}; export both files again") from error
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror or error}") from error


def replace(path: Path, data: bytes) -> None:
    """Write a file as `replace_all` does."""
    replace_all({path: data})


def replace_all(files: Mapping[Path, bytes]) -> None:
    """Write beside, and rename once all is written: a library that is loaded keeps its own file.

    Parameters
    ----------
    files
        The bytes of each file. Missing folders are made.

    Raises
    ------
    ArtifactError
        If one cannot be written; then none of them is.
    """
    with contextlib.ExitStack() as temporaries:
        written = []
        for path, data in files.items():
            with _explained(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
                temporaries.callback(Path(name).unlink, missing_ok=True)
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(name).chmod(0o755 if path.suffix == ".so" else 0o644)
                written.append((Path(name), path))
        for temporary, path in written:
            with _explained(path):
                temporary.replace(path)


def write_output(path: Path, data: bytes) -> None:
    """Write what a user asked for: a file as a whole, and whatever else is there as it is.

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
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"{path} cannot be written: {error.strerror or error} (folder {path.parent})"
        ) from error
