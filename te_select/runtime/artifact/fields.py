"""What fields of JSON must be, and the records of a manifest that hold simple ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LINE = "a string of one line"
EACH = "every field"


def check(value: Any, form: Any, name: str) -> None:
    """Check what others have written as JSON; TypeError if it is not of a form.

    Parameters
    ----------
    value
        The value.
    form
        A type; `LINE`; a list of the form of all elements; or a dict of the forms of fields, of
        which one that ends in ``?`` may be missing, and `EACH` stands for all.
    name
        What it is called.
    """
    kind: Any = form if isinstance(form, type) else type(form)
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {value!r}, expected a {kind.__name__}")
    if form is LINE and not value.isprintable():
        raise TypeError(f"{name} is {value!r}, expected {LINE}")
    if isinstance(form, list):
        for each in value:
            check(each, form[0], name)
    elif isinstance(form, dict) and EACH in form:
        for each in value.values():
            check(each, form[EACH], name)
    elif isinstance(form, dict):
        for key, of in form.items():
            field = key.removesuffix("?")
            if field == key or field in value:
                check(value.get(field), of, field)


@dataclass(frozen=True)
class Choice:
    """The config that was chosen for a kernel, for one level of its library.

    Parameters
    ----------
    config
        The knobs of the schedule it was built with, as JSON types.
    origin
        Where the config comes from: ``"default"``, ``"tuned:<record>"`` or ``"nearest:<record>"``.
    why
        The reason for that, in one line; empty if nobody wrote it down.
    """

    config: Mapping[str, Any]
    origin: str = "default"
    why: str = ""

    def to_json(self, before: Choice | None = None) -> dict[str, Any]:
        """The choice as JSON types; after another choice, only what differs from it."""
        whole = {"config": dict(self.config), "origin": self.origin, "why": self.why}
        return {k: v for k, v in whole.items() if before is None or v != getattr(before, k)}

    @classmethod
    def parse(cls, item: Mapping[str, Any], before: Choice | None = None) -> Choice:
        """Read a choice; what it does not say is as in the one before it.

        Libraries of 0.2 have ``changes``, the knobs with other values, for some configs.
        """
        if before is not None:
            changed = {**before.config, **item.get("changes", {})}
            item = {**vars(before), "config": changed, **item}
        return cls(item["config"], item["origin"], item["why"])


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
