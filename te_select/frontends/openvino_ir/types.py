"""Element types as IR files spell them, in ports (``FP32``) and in attributes (``f32``)."""

from __future__ import annotations

_NAMES = {
    "fp64": "float64",
    "f64": "float64",
    "fp32": "float32",
    "f32": "float32",
    "fp16": "float16",
    "f16": "float16",
    "bf16": "bfloat16",
    "bool": "bool",
    "boolean": "bool",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    **{
        f"{letter}{bits}": f"{word}{bits}"
        for letter, word in (("i", "int"), ("u", "uint"))
        for bits in (8, 16, 32, 64)
    },
}
_NOT_KNOWN = ("", "dynamic", "undefined", "unspecified")


def dtype_of(spelled: str) -> str | None:
    """Our name of an element type, or the file's own if we have none; None if it is not known."""
    word = spelled.lower()
    return None if word in _NOT_KNOWN else _NAMES.get(word, word)
