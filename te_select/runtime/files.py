"""Files of an artifact: read if they are regular files, and replaced as a whole."""

from __future__ import annotations

import os
import stat
import tempfile
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
    """Write beside and rename: a library that is loaded keeps its own file.

    Raises
    ------
    ArtifactError
        If it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            temporary.chmod(0o755 if path.suffix == ".so" else 0o644)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ArtifactError(f"{path} cannot be written: {error.strerror or error}") from error
