"""Artifacts on the disk: read and checked without being loaded, and written as a whole.

The library ``NAME.so`` holds its manifest. ``NAME.json`` beside it is a copy of the manifest for
people and other tools. Only libraries of the first format hold no manifest; for these, the
``.json`` file is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from te_select.errors import ArtifactError
from te_select.runtime import embedded, files
from te_select.runtime.manifest import (
    FIRST_FORMAT,
    Manifest,
    is_manifest,
    manifest_path,
    parse,
)

_READS = 3  # attempts to read the two files of the first format; one may be replaced in between


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
    sealed
        Whether the file itself holds the manifest; false only for libraries of the first format.
    """

    image: bytes
    manifest: Manifest
    sha256: str
    sealed: bool

    @property
    def is_first_format(self) -> bool:
        """Whether its code was linked in the first format, without later additions."""
        return not embedded.is_linked_in(self.image)

    def alone(self, manifest: Manifest) -> Stored:
        """The same code with another manifest, of some of its kernels, inside."""
        change = embedded.replace if self.sealed else embedded.append
        image = change(self.image, manifest)
        return Stored(image, manifest, embedded.digest_of(image), sealed=True)

    def beside(self) -> bytes:
        """The text of the file beside the library."""
        return self.manifest.to_text(self.sha256)


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
    path = files.library_path(path)
    beside = manifest_path(path)
    for _ in range(_READS):
        image = files.read(path, "a library as te_select.export makes it")
        held = embedded.read(image, str(path), check=check)
        if held is not None:
            return Stored(image, *held, sealed=True)
        if files.is_missing(beside):
            raise ArtifactError(
                f"{path} holds no manifest, and {beside} is missing; expected a library as "
                "te_select.export makes it"
            )
        manifest, sha256, form = parse(files.read(beside, "the manifest"), str(beside))
        fits = not check or hashlib.sha256(image).hexdigest() == sha256
        if form == FIRST_FORMAT and fits:
            return Stored(image, manifest, sha256, sealed=False)
    raise ArtifactError(
        f"{path} is not the library its manifest describes (the SHA-256 differs): it is "
        "truncated or was changed; export it again"
    )


def write(stored: Stored, path: str | os.PathLike[str]) -> Path:
    """Write a library and the file beside it; each appears as a whole.

    Parameters
    ----------
    stored
        The library.
    path
        The path to write, which ends in .so. Missing folders are made. An old file is replaced,
        even if it is loaded. ``NAME.json`` is replaced only if it is a manifest.

    Returns
    -------
    Path
        The path of the library.

    Raises
    ------
    ArtifactError
        If the path does not end in .so or has the name of a module of Python's standard library,
        a file cannot be written, or ``NAME.json`` exists and is not a manifest.
    """
    if not stored.sealed:  # two files cannot be replaced at one moment
        stored = stored.alone(stored.manifest)
    path = files.new_library_path(path)
    beside = manifest_path(path)
    if files.is_folder(beside):
        raise ArtifactError(f"{beside} cannot be written: it is a folder")
    if files.is_there(beside) and not _is_ours(beside):
        raise ArtifactError(
            f"{beside} is no manifest of te-select, and is not replaced by one; expected a library "
            "of another name"
        )
    files.replace_all({path: stored.image, beside: stored.beside()})
    return path


def write_beside(stored: Stored, path: str | os.PathLike[str]) -> bool:
    """Write ``NAME.json`` again if it differs from the library's manifest.

    Parameters
    ----------
    stored
        The library that `read` returned.
    path
        The ``.so``.

    Returns
    -------
    bool
        Whether it was written. A file that is not a manifest, or cannot be written, is left
        unchanged.
    """
    beside = manifest_path(path)
    if not stored.sealed:  # in the first format, the file is the manifest itself
        return False
    with contextlib.suppress(ArtifactError):
        if files.is_missing(beside) or (_is_ours(beside) and files.read(beside) != stored.beside()):
            files.replace(beside, stored.beside())
            return True
    return False


def _is_ours(path: Path) -> bool:
    """Whether a file is a manifest, which may be replaced."""
    try:
        return is_manifest(files.read(path, "a manifest"))
    except ArtifactError:
        return False
