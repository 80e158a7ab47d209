"""The configs that were chosen for a kernel, one for each level of its library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from te_select.runtime.artifact.fields import typed


@dataclass(frozen=True)
class Choice:
    """The config that was chosen for a kernel.

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


_FIELDS = {"config": dict, "origin": str, "why": str}


def to_json(choice: Choice, before: Choice | None = None) -> dict[str, Any]:
    """A choice as JSON types; after another choice, only what differs from it.

    A config that differs is ``changes``, the knobs with other values. It is ``config``, the whole,
    if a knob of the other is missing.
    """
    whole = {"config": dict(choice.config), "origin": choice.origin, "why": choice.why}
    if before is None:
        return whole
    said = {name: value for name, value in whole.items() if value != getattr(before, name)}
    if "config" in said and choice.config.keys() >= before.config.keys():
        del said["config"]
        other = before.config.items()
        said["changes"] = {knob: v for knob, v in choice.config.items() if (knob, v) not in other}
    return said


def parse(item: Mapping[str, Any], before: Choice | None = None) -> Choice:
    """Read a choice; what it does not say is as in the one before it.

    Raises
    ------
    TypeError
        If a field is missing, or is of another type.
    """
    if before is not None:
        item = {"origin": before.origin, "why": before.why, **item}
        if "config" not in item:
            item["config"] = {**before.config, **typed({"changes": {}, **item}, "changes", dict)}
    config, origin, why = (typed(item, name, form) for name, form in _FIELDS.items())
    return Choice(config, origin, why)
