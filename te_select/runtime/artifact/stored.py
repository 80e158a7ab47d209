"""Artifacts on the disk: read and checked without being loaded, and written as a whole.

The library ``NAME.so`` holds its manifest. ``NAME.json`` beside it is a copy of the manifest for
people and other tools. ``NAME.h`` declares the plain C functions. ``NAME.a`` holds them, and
``NAME.o`` holds the functions for TVM, where an export wrote one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from te_select.base import atomic, on_disk
from te_select.errors import ArtifactError, caught
from te_select.runtime.artifact import embedded, header
from te_select.runtime.artifact.manifest import Manifest

# The name of the object file in a static library.
MEMBER = "te_select.o"
# The endings of a static library for C, and of an object file for TVM.
ARCHIVE, OBJECT = ".a", ".o"
DERIVED = (".json", ".h")  # from a manifest; no header if there is no plain C function
# By the ending of a file beside a library: what it is, and what matches one of an export.
_BESIDE = {
    ".json": ("manifest", b""),
    ".h": ("header", re.escape(header.MARK)),
    ARCHIVE: ("static library", rb"!<arch>\n.*" + re.escape(f"{MEMBER}/ ".encode())),
    OBJECT: ("object file", rb"\x7fELF.*" + embedded.OWNER),
}


@dataclass(frozen=True)
class Stored:
    """A library on the disk.

    Parameters
    ----------
    image
        The bytes of the file.
    manifest
        Its manifest.
    sha256
        Its digest.
    static
        Static code of the same build, to be written with it: bytes, by `ARCHIVE` or `OBJECT`.
    """

    image: bytes
    manifest: Manifest
    sha256: str
    static: Mapping[str, bytes] = field(default_factory=dict)

    def alone(self, manifest: Manifest) -> Stored:
        """The same code with another manifest, of some of its kernels, inside."""
        return from_bytes(embedded.replace(self.image, manifest), "the library")


def read(path: str | os.PathLike[str], *, check: bool = True) -> Stored:
    """Read a library once, and check that it has not changed since it was sealed.

    Parameters
    ----------
    path
        The ``.so``.
    check
        False to read the manifest of a library even if it was changed; such a library must not be
        loaded.

    Returns
    -------
    Stored
        The bytes that were checked, with their manifest.

    Raises
    ------
    ArtifactError
        If a file is missing, damaged or of another format version.
    """
    path = on_disk.library_path(path)
    image = on_disk.read(path, "a library as te_select.export makes it")
    return from_bytes(image, str(path), check=check)


def from_bytes(image: bytes, place: str, *, check: bool = True) -> Stored:
    """A library that came by another way than a file, as `read` does; ``place`` is for messages.

    Raises
    ------
    ArtifactError
        If the bytes are damaged, or hold no manifest.
    """
    return Stored(image, *embedded.read(image, place, check=check))


def check_path(path: str | os.PathLike[str], endings: Iterable[str] = DERIVED) -> Path:
    """Check the path of a library before the work of a build, as `write` does after it.

    Parameters
    ----------
    path
        The ``.so`` that is to be written.
    endings
        Of the files that will be written beside it: `DERIVED`, `ARCHIVE`, `OBJECT`.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    ArtifactError
        As `write`.
    """
    checked = on_disk.new_library_path(path)
    atomic.check_folder(checked)
    for ending in endings:
        _check_replaceable(checked.with_suffix(ending))
    return checked


def write(stored: Stored, path: str | os.PathLike[str]) -> Path:
    """Write a library and the files beside it; each appears as a whole.

    Parameters
    ----------
    stored
        The library.
    path
        The path to write, which ends in .so. Missing folders are made. An old file is replaced,
        even if it is loaded. ``NAME.json``, ``NAME.h``, ``NAME.a`` and ``NAME.o`` are only replaced
        if an export wrote them. One that only an earlier export wrote is removed.

    Returns
    -------
    Path
        The path of the library.

    Raises
    ------
    ArtifactError
        If the path does not end in .so or has the name of a module of Python's standard library,
        a file cannot be written, or a file beside it exists that no export wrote.
    """
    path = on_disk.library_path(path)
    write_all({path: stored})
    return path


def write_all(libraries: Mapping[Path, Stored]) -> None:
    """Write libraries as `write` does; if a file of one has no room, none is replaced.

    If the system refuses a rename at the end, because a file is immutable or something is mounted
    on it, those before it are new.
    """
    wanted: dict[Path, bytes] = {}
    for path, stored in libraries.items():
        beside = {**_derived(stored), **stored.static}
        check_path(path, beside)
        wanted |= {path: stored.image}
        wanted |= {path.with_suffix(ending): data for ending, data in beside.items()}
    atomic.replace_all(wanted)
    for other in {path.with_suffix(ending) for path in libraries for ending in _BESIDE}:
        if other not in wanted and _is_ours(other):
            atomic.remove(other)  # of an earlier export: it would not fit


def write_beside(stored: Stored, path: str | os.PathLike[str]) -> tuple[list[str], list[str]]:
    """Write ``NAME.json`` and ``NAME.h`` again if they differ from what the library holds.

    Parameters
    ----------
    stored
        The library that `read` returned.
    path
        The ``.so``.

    Returns
    -------
    tuple of two lists of str
        The names of the files that were written; and why others that differ were left unchanged:
        no export wrote them, or they cannot be written.
    """
    written, left = [], []
    for ending, data in _derived(stored).items():
        beside = on_disk.library_path(path).with_suffix(ending)
        try:
            _check_replaceable(beside)
            if on_disk.is_missing(beside) or on_disk.read(beside) != data:
                atomic.replace(beside, data)
                written.append(beside.name)
        except ArtifactError as error:
            left.append(str(error))
    return written, left


def _derived(stored: Stored) -> dict[str, bytes]:
    """The files beside a library that follow from its manifest, by their endings."""
    texts = stored.manifest.to_text(stored.sha256), header.text(stored.manifest)
    both = zip(DERIVED, texts, strict=True)
    return {ending: text for ending, text in both if text is not None}


def _check_replaceable(path: Path) -> None:
    """Refuse to replace what no export has written."""
    if on_disk.is_there(path) and not _is_ours(path):
        what, _ = _BESIDE[path.suffix]
        raise ArtifactError(
            f"{path} is no {what} of te-select, and is not replaced by one; expected a library "
            "of another name"
        )


def _is_ours(path: Path) -> bool:
    """Whether a file beside a library was written by an export, and may be replaced."""
    what, pattern = _BESIDE[path.suffix]
    try:
        data = on_disk.read(path, f"a {what}")
        if path.suffix == ".json":  # it may be damaged, or of another version
            return bool({"format", "kernels", "sha256", "target"} <= json.loads(data).keys())
        return re.match(pattern, data, re.DOTALL) is not None
    except caught(ArtifactError, ValueError, RecursionError, AttributeError):
        return False
