"""Groups of flags that several verbs share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make a verb for typer: a parameter whose type is a dataclass stands for a flag per field.

    Parameters
    ----------
    command
        The verb.

    Returns
    -------
    callable
        It takes every flag by name, and calls ``command`` with the dataclasses made of them.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    flags = []
    for parameter in signature.parameters.values():
        if not is_dataclass(parameter.annotation):
            flags.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        group = groups[parameter.name] = parameter.annotation
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            assert field.default is not MISSING
            flag = parameter.replace(name=field.name, annotation=hints[field.name])
            flags.append(flag.replace(kind=parameter.KEYWORD_ONLY, default=field.default))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    vars(run)["__signature__"] = signature.replace(parameters=flags)
    return run
