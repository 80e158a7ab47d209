"""The formats of model files: one record for each, with everything in which they differ.

A new format needs one record here, and a module that reads it; `read_model` and the verbs take both
from here. What its operator takes, and how it spells element types, is in
`te_select.operator.systems`. A record names its reader by a dotted path, which is imported only
when it is used.
"""

import pkgutil
from dataclasses import dataclass
from typing import BinaryIO

from te_select.errors import ToolchainError
from te_select.operator.node import ModelNode


@dataclass(frozen=True)
class Format:
    """One format of model files.

    Parameters
    ----------
    suffix
        The usual ending of its files, in lower case.
    title
        What a file of it is, for people, with an article.
    reader
        The function that reads it. It takes what `read` takes, and raises the same errors.
    largest
        Bytes of the largest file that is read.
    begins
        The first bytes of its files, by which a file with another ending is recognized.
    """

    suffix: str
    title: str
    reader: str
    largest: int
    begins: tuple[bytes, ...] = ()

    def read(self, file: BinaryIO) -> list[ModelNode]:
        """Read an opened file of the format; the rest is as for `te_select.read_model`."""
        try:
            reader = pkgutil.resolve_name(self.reader)
        except ModuleNotFoundError as error:
            raise ToolchainError(
                f"{self.title} is read with {error.name}; pip install {error.name}"
            ) from error
        return list(reader(file))


FORMATS = [  # the first is that of a file whose name and bytes tell none
    Format(
        ".onnx",
        "an ONNX file",
        "te_select.frontends.onnx:read_onnx",
        (1 << 31) - 1,  # the longest message of protobuf
    ),
    Format(
        ".xml",
        "an OpenVINO IR (.xml)",
        "te_select.frontends.openvino:read_openvino",
        64 << 20,  # 100,000 layers, the most that are read, take as much
        (b"<",),
    ),
    Format(
        ".json",
        "a oneDNN Graph dump (.json)",
        "te_select.frontends.onednn_graph:read_onednn",
        4 << 20,  # a dumped graph of oneDNN has some thousands of bytes
        (b"{", b"["),
    ),
]


def titles() -> str:
    """What a model file may be, as a sentence of a help text."""
    *others, last = (each.title for each in FORMATS)
    text = f"{', '.join(others)} or {last}."
    return text[0].upper() + text[1:]
