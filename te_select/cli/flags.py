"""Flags that several verbs share, alone and in groups, and how their values are read."""

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from typer import Option, Typer

from te_select.base import kinds
from te_select.cli.console import Command, UsageError
from te_select.errors import ArtifactError, TuningError
from te_select.records.required import NEAR, Required


def _records(text: str | None) -> Any:
    """The value of ``--tuning-logs`` as `te_select.compile` takes it."""
    if text is not None and text != "none" and not (text and Path(text).is_dir()):
        raise UsageError(f"--tuning-logs {text!r} is no folder; expected one, or none")
    return False if text == "none" else text


Json = Annotated[bool, Option("--json", help="Print one JSON document and no more.")]
Profile = Annotated[
    bool, Option(help="Measure the machine's profile first, if it is only reasoned.")
]
_TARGET = Option(help=f"{', '.join(kind.targets for kind in kinds.KINDS.values())}, or JSON.")
Target = Annotated[str, _TARGET]
OptionalTarget = Annotated[str | None, _TARGET]  # for inspect, where a library has a target
Level = Annotated[str | None, Option(help="Of a library for several, such as x86-64-v3.")]
Logs = Annotated[
    str | None,
    Option(
        "--tuning-logs",
        callback=_records,
        help="A folder of records, or none; default: your own, then the shipped.",
    ),
]
Config = Annotated[list[str] | None, Option(help="A knob by hand, such as piece=4096; repeatable.")]


RequireRecord = Annotated[
    str | None,
    Option(
        metavar="[near]",
        help="Fail if a workload has no record of its own; near: nor a nearest one.",
    ),
]


class Verbs(Typer):
    """Verbs, whose flags may be grouped in dataclasses."""

    def verb(self, name: str, **options: Any) -> Callable[[Callable[..., None]], Any]:
        """Make a function a verb: a parameter whose type is a dataclass is a flag per field.

        In the help, the flags of a dataclass are a panel, which has a title of its own.
        """
        make = self.command(name, cls=Command, **options)
        return lambda command: make(_with_groups(command))


def _with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make a verb take every flag by name, and call ``command`` with dataclasses made of them."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    flags = []
    for parameter in signature.parameters.values():
        group: Any = parameter.annotation
        if not is_dataclass(group):
            flags.append(parameter.replace(kind=parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        for flag in inspect.signature(groups[parameter.name], eval_str=True).parameters.values():
            _, option = get_args(flag.annotation)
            option.rich_help_panel = groups[parameter.name].title
            flags.append(flag.replace(kind=flag.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    vars(run)["__signature__"] = signature.replace(parameters=flags)
    return run


@contextlib.contextmanager
def of_flag(flag: str) -> Iterator[None]:
    """Make errors about a flag's value bad usage, with a message that begins with the flag."""
    try:
        yield
    except (ValueError, ArtifactError, TuningError) as error:
        raise UsageError(f"{flag} {error}") from error


def parse_required(text: str | None) -> Required:
    """The value of ``--require-record`` as `te_select.compile` takes it."""
    check_known("--require-record", text, ("own", NEAR))
    return NEAR if text == NEAR else text is not None


def parse_knobs(texts: Sequence[str] | None) -> dict[str, Any]:
    """The knobs of ``--config``, with values of JSON; raises as `parse_pairs`."""
    return parse_pairs("--config", texts, "piece=4096 or rows=true", json.loads)


def parse_pairs(
    flag: str, texts: Sequence[str] | None, example: str, parse: Callable[[str], Any] = str
) -> dict[str, Any]:
    """The values of a flag that each give a name something.

    Raises
    ------
    UsageError
        If one is malformed, or a name is given twice.
    """
    found: dict[str, Any] = {}
    for text in texts or ():
        try:
            name, value = text.split("=", 1)
            parsed = parse(value)
        except (RecursionError, ValueError) as error:
            raise UsageError(f"{flag} {text!r}: expected, for example, {example}") from error
        if name in found:
            raise UsageError(f"{flag} {name} is given twice; expected it once")
        found[name] = parsed
    return found


def no_meaning(where: str, **flags: Any) -> None:
    """Refuse flags that have a value and would be ignored, such as "beside --model".

    Raises
    ------
    UsageError
        If there is such a flag.
    """
    for name, value in flags.items():
        if value is not None and value is not False and value != []:
            raise UsageError(f"--{name.replace('_', '-')} has no meaning {where}; leave it out")


def check_known(
    flag: str, value: str | None, known: Iterable[str], problem: str = "is not known"
) -> None:
    """Refuse the value of a flag that is none of those that there are."""
    if value not in (None, *known):
        raise UsageError(f"{flag} {value!r} {problem}; expected one of {', '.join(known)}")
