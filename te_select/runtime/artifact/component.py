"""Entries of a manifest's list of what a library is made of and by."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Component:
    """What a library is made of, or made by.

    Parameters
    ----------
    name, version
        Of the software.
    part
        ``"code"`` if some of it is in the library, ``"compiler"`` if it made some.
    license
        Its licence, as an SPDX expression; empty if that is not known.
    """

    name: str
    version: str
    part: str
    license: str = ""

    @classmethod
    def from_json(cls, item: Any) -> Component:
        """Read an entry.

        Raises
        ------
        TypeError
            If it is not an object, or a field is missing or is no text of one line.
        """
        if not isinstance(item, dict):
            raise TypeError(f"component {item!r} is not an object")
        texts: dict[str, str] = {}
        for field in fields(cls):
            text = item.get(field.name)
            if not isinstance(text, str) or not text.isprintable():
                raise TypeError(f"{field.name} of component is {text!r}, expected text of one line")
            texts[field.name] = text
        return cls(**texts)
