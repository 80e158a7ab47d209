"""Counts the parts of an ONNX file before it is parsed, from the bytes alone.

Two bytes of a file can be a node, for which protobuf takes some hundred bytes of memory. No real
model is like that, but a damaged or hostile file may be.
"""

from collections.abc import Iterator
from itertools import chain

from te_select.errors import ModelError

MOST_PARTS = 300_000  # of a graph: its nodes, initializers, inputs, outputs and stated types
_GRAPH = 7  # the field of ModelProto
_VARINT, _BYTES = 0, 2  # wire types
_FIXED = {1: 8, 5: 4}  # wire types, with their widths in bytes
_KINDS = (_VARINT, _BYTES, *_FIXED)
_LONGEST_VARINT = 70  # bits


def check_parts(data: bytes) -> None:
    """Refuse a file whose graph has more parts than any model.

    Parameters
    ----------
    data
        The file. If it is not the encoding of a model, protobuf refuses it later.

    Raises
    ------
    ModelError
        If there are too many.
    """
    view = memoryview(data)
    parts = 0
    for field, start, end in _fields(view, 0, len(view)):
        inside = _fields(view, start, end) if field == _GRAPH else ()
        for _ in chain([field], inside):
            parts += 1
            if parts > MOST_PARTS:
                raise ModelError(f"the file has more than {MOST_PARTS} nodes and initializers")


def _fields(view: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a message: number, and where its bytes begin and end; stops at a bad one."""
    while at < end:
        key, at = _varint(view, at)
        kind = key & 7
        start = at
        if kind == _BYTES:
            length, start = _varint(view, at)
            at = start + length
        elif kind == _VARINT:
            _, at = _varint(view, at)
        elif kind in _FIXED:
            at += _FIXED[kind]
        if at > len(view) or not key >> 3 or kind not in _KINDS:
            return
        yield key >> 3, start, at


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """An int and where it ends; if it is cut short, the end is beyond all bytes."""
    value = 0
    for shift in range(0, _LONGEST_VARINT, 7):
        if at >= len(view):
            break
        byte, at = view[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return value, at
    return 0, len(view) + 1
