"""Groups of flags that several verbs share."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any, get_args, get_type_hints

from typer.core import TyperCommand


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
            annotation = _of_panel(hints[field.name], getattr(group, "PANEL", "Which workloads"))
            flag = parameter.replace(name=field.name, annotation=annotation)
            flags.append(flag.replace(kind=parameter.KEYWORD_ONLY, default=field.default))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    vars(run)["__signature__"] = signature.replace(parameters=flags)
    return run


class GroupedCommand(TyperCommand):
    """A verb whose help lists its options by groups: those of a dataclass have its ``PANEL``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, a section for each group."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if (record := param.get_help_record(ctx)) is not None:
                title = getattr(param, "rich_help_panel", None) or "Options"
                panels.setdefault(title, []).append(record)
        for title, records in panels.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _of_panel(annotation: Any, panel: str) -> Any:
    """The annotation of a flag, whose option is listed under ``panel``."""
    kind, option = get_args(annotation)
    option = copy.copy(option)
    option.rich_help_panel = panel
    return Annotated[kind, option]
