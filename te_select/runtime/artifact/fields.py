"""Records of a manifest that hold simple fields, as objects of JSON that others have written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

_Record = TypeVar("_Record")
_KINDS = {"str": str, "int": int, "Mapping[str, Any]": dict, "str | None": object}  # of a field


def typed(data: Mapping[str, Any], key: str, kind: type, of: str = "") -> Any:
    """The field of an object; TypeError if it is of another type, or missing."""
    value = data.get(key)
    if not isinstance(value, kind):
        raise TypeError(f"{key} is {value!r}, expected a {kind.__name__}{of}")
    return value


def check_strings(values: Iterable[Any], key: str) -> None:
    """Check that values are strings of one line; TypeError if not."""
    for value in values:
        if not isinstance(value, str) or not value.isprintable():
            raise TypeError(f"{key} holds {value!r}, expected strings of one line")


def read(record: type[_Record], item: Any, what: str) -> _Record:
    """A record of simple fields; TypeError if one is missing, or of another type."""
    if not isinstance(item, dict):
        raise TypeError(f"{what} {item!r} is not an object")
    declared = [(each.name, _KINDS[str(each.type)]) for each in fields(record)]  # type: ignore[arg-type]
    return record(**{name: typed(item, name, kind, f" of the {what}") for name, kind in declared})


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
        """The choice as JSON types; after another choice, only what differs from it.

        A config that differs is ``changes``, the knobs with other values. It is ``config``, the
        whole, if a knob of the other is missing.
        """
        whole = {"config": dict(self.config), "origin": self.origin, "why": self.why}
        if before is None:
            return whole
        said = {name: value for name, value in whole.items() if value != getattr(before, name)}
        if "config" in said and self.config.keys() >= before.config.keys():
            del said["config"]
            other = before.config.items()
            said["changes"] = {knob: v for knob, v in self.config.items() if (knob, v) not in other}
        return said

    @classmethod
    def parse(cls, item: Mapping[str, Any], before: Choice | None = None) -> Choice:
        """Read a choice; what it does not say is as in the one before it."""
        if before is not None:
            item = {"origin": before.origin, "why": before.why, **item}
            if "config" not in item:
                changes = typed({"changes": {}, **item}, "changes", dict)
                item["config"] = {**before.config, **changes}
        return read(cls, item, "choice")


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
