"""Reads model files: every Where or Select in them, and what te-select does with it.

`te_select.frontends.formats` lists the formats. Nothing here needs a compiler.
The onnx and defusedxml packages are optional.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from te_select.base import on_disk
from te_select.errors import ArtifactError, ModelError, caught
from te_select.frontends.formats import FORMATS, Format
from te_select.operator.broadcast import printable
from te_select.operator.node import ModelFile, ModelNode

__all__ = ["ModelNode", "read_model"]

_LONGEST = 600  # characters of a message
_LOOKED_AT = 512  # bytes at the start of a file whose name does not tell the format
_BLOCK = 1 << 20  # bytes of a file that are read at once for its digest
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_model(path: str | os.PathLike[str]) -> list[ModelNode]:
    """Find every Where or Select of a model file.

    Parameters
    ----------
    path
        A file of one of the formats in `te_select.frontends.formats`, such as ``model.onnx``. One
        with another ending is recognized by its first bytes.

    Returns
    -------
    list of ModelNode
        In the order of the file; empty if it has none.

    Raises
    ------
    ModelError
        If the file cannot be read, is not a model, or contradicts itself.
    ToolchainError
        If the package that reads the format is missing, or a process that it needs cannot start.
    """
    path = Path(path)
    try:
        file = on_disk.opened(path, "a model file")
    except ArtifactError as error:
        raise ModelError(str(error)) from error
    try:
        with file:
            found = _format_of(path, file)
            if os.fstat(file.fileno()).st_size > found.largest:
                raise ModelError(f"the file is larger than {found.largest >> 20} MiB")
            model = ModelFile(printable(path.name), _digest(file))
            return [replace(node, model=model) for node in found.read(file)]
    except caught(OSError) as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error
    except caught(MemoryError) as error:
        raise ModelError(f"{path} is larger than the memory; expected a model file") from error
    except ModelError as error:
        raise ModelError(f"{path}: {_shortened(str(error))}") from error


def _digest(file: BinaryIO) -> str:
    found = hashlib.sha256()
    for block in iter(lambda: file.read(_BLOCK), b""):
        found.update(block)
    file.seek(0)
    return found.hexdigest()


def _shortened(text: str) -> str:
    """A message that may hold long texts of the file."""
    shown = printable(text)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."


def _format_of(path: Path, file: BinaryIO) -> Format:
    """The format that a file's name tells, or otherwise its first bytes."""
    for each in FORMATS:
        if each.suffix == path.suffix.lower():
            return each
    start = file.read(_LOOKED_AT).removeprefix(_BYTE_ORDER_MARK).lstrip()
    file.seek(0)
    return next((each for each in FORMATS if start.startswith(each.begins)), FORMATS[0])
