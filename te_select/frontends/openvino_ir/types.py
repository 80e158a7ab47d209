"""Element types as IR files spell them, in ports (``FP32``) and in attributes (``f32``)."""

from __future__ import annotations

from te_select.operator.systems import TYPE_NAMES

_NAMES = TYPE_NAMES["openvino"]
_NOT_KNOWN = ("", "dynamic", "undefined", "unspecified")


def dtype_of(spelled: str) -> str | None:
    """Our name of an element type, or the file's own if we have none; None if it is not known."""
    word = spelled.lower()
    return None if word in _NOT_KNOWN else _NAMES.get(word, word)
