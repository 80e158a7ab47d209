"""Reads JSON by types; and the records of a manifest that hold no others."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeAlias, get_args, get_origin

Line: TypeAlias = Annotated[str, "of one line"]
_IN_JSON = {Annotated: str, Mapping: dict, tuple: list, Any: object}


def read(form: Any, value: Any, name: str) -> Any:
    """Read what others have written as JSON; TypeError if it is not of a type.

    Parameters
    ----------
    form
        The type: str, int, Any, a union of such, `Line`, ``tuple[T, ...]``, ``Mapping[str, T]``, a
        class that has ``from_json``, or a dataclass. Only fields with a default may be missing.
    value
        The value.
    name
        What it is called.

    Returns
    -------
    object
        The value as that type; of an object, what a dataclass does not know is left out.
    """
    kind, parts, expected, known = _about(form)
    if not isinstance(value, expected):
        raise TypeError(f"{name} is {value!r}, expected a {getattr(expected, '__name__', form)}")
    if kind is Annotated and not value.isprintable():
        raise TypeError(f"{name} is {value!r}, expected a string of one line")
    if kind is tuple:
        return tuple(read(parts[0], each, name) for each in value)
    if kind is Mapping and parts[1] is not Any:
        return {key: read(parts[1], each, name) for key, each in value.items()}
    if not known:
        return value
    if hasattr(form, "from_json"):
        return form.from_json(value)
    found = {}
    for each in known:
        if each.name in value or each.default is each.default_factory is MISSING:
            found[each.name] = read(each.type, value.get(each.name), each.name)
    return form(**found)


@cache
def _about(form: Any) -> tuple[Any, Any, Any, Any]:
    """What a type is and of what, what it is in JSON, and its fields; to find out takes 5 us."""
    kind = get_origin(form) or form
    known = fields(form) if is_dataclass(form) else ()
    in_json = dict if known else _IN_JSON.get(kind, form)
    return kind, get_args(form), in_json, known


@dataclass(frozen=True)
class Choice:
    """The config that was chosen for a kernel, for one level of its library.

    Parameters
    ----------
    config
        The knobs of the schedule it was built with, as JSON types.
    origin
        Where the config comes from: ``"default"``, ``"tuned:<record>"``, ``"nearest:<record>"`` or
        ``"by hand"``.
    why
        The reason for that, in one line; empty if nobody wrote it down.
    """

    config: Mapping[str, Any]
    origin: str
    why: str

    def to_json(self, before: "Choice | None" = None) -> dict[str, Any]:
        """The choice as JSON types; after another choice, only what differs from it."""
        whole = {"config": dict(self.config), "origin": self.origin, "why": self.why}
        return {k: v for k, v in whole.items() if before is None or v != getattr(before, k)}

    @classmethod
    def parse(cls, item: Mapping[str, Any], before: "Choice | None" = None) -> "Choice":
        """Read a choice; what it does not say is as in the one before it."""
        whole = item if before is None else {**vars(before), **item}
        found: Choice = read(cls, whole, "it")
        return found


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

    name: Line
    version: Line
    part: Line
    license: Line = ""
