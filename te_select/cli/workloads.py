"""The workload flags that the verbs share."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from te_select.base import on_disk
from te_select.cli.console import UsageError
from te_select.cli.flags import check_known, of_flag
from te_select.operator.broadcast import RULES, Dim, shown
from te_select.operator.systems import OPS
from te_select.operator.workload import Workload

_OPERANDS = ("cond", "then", "else")
_SHAPES = tuple(f"{name}_shape" for name in _OPERANDS)
_FIELDS = (*_SHAPES, "dtype", "auto_broadcast", "axis", "op", "name")


@dataclass
class WorkloadFlags:
    """A workload, by its shapes and its rule."""

    title = "Which workloads"
    cond: Annotated[str | None, Option(help='Shape of cond: 1,batch,128; "" scalar.')] = None
    then: Annotated[str | None, Option(help="Shape of then.")] = None
    else_: Annotated[str | None, Option("--else", help="Shape of else.")] = None
    dtype: Annotated[str | None, Option(help="Element type; default float32.")] = None
    op: Annotated[str | None, Option(help=f"A system's rule: {', '.join(OPS)}.")] = None
    auto_broadcast: Annotated[str | None, Option(help=f"{', '.join(RULES)}.")] = None
    axis: Annotated[int | None, Option(help="Under pdpd, where else and cond start.")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The values of the flags that are given, by name."""
        return {name.strip("_"): each for name, each in vars(self).items() if each is not None}


@dataclass
class WorkloadsFlags(WorkloadFlags):
    """Workloads by their shapes, several of them as JSON."""

    workload: Annotated[
        list[str] | None,
        Option(help='As JSON: {"cond_shape": [4], "then_shape": ...}; repeatable.'),
    ] = None
    workloads: Annotated[Path | None, Option(help="A file with a JSON list.")] = None


def source_of(flags: WorkloadsFlags, model: Path | None, sizes: Sequence[str] | None) -> list[str]:
    """The flags that name the workloads, if these are of a model or of one file."""
    words = []
    if model:
        words = ["--model", str(model)]
    elif flags.given.keys() == {"workloads"}:
        words = ["--workloads", str(flags.workloads)]
    for size in (sizes or ()) if words else ():
        words += ["--size", size]
    return words


def gather(flags: WorkloadFlags) -> list[tuple[str, Workload]]:
    """Make all workloads that the command line names.

    Returns
    -------
    list of (str, Workload)
        Those of the plain flags first. The name is that of the field ``name`` in JSON, or otherwise
        the workload's own.

    Raises
    ------
    UsageError
        If a flag is missing or malformed.
    SelectError
        If the values make no workload.
    """
    given = flags.given
    texts, file = given.pop("workload", ()), given.pop("workloads", None)
    items = []
    if given:
        if missing := [f"--{name}" for name in _OPERANDS if name not in given]:
            raise UsageError(
                f'no {", ".join(missing)}; expected a shape such as 1,batch,128, or "" for a scalar'
            )
        for name in _OPERANDS:
            with of_flag(f"--{name}"):
                given[f"{name}_shape"] = parse_shape(given.pop(name))
        items.append(("the flags", given))
    items += [("--workload", _parse_json(f"--workload {shown(text)}", text)) for text in texts]
    if file:
        listed = read_json("--workloads", file, "a JSON list of workloads")
        if not isinstance(listed, list):
            raise UsageError(f"--workloads {file} holds no list; expected [{{...}}, ...]")
        items += [(f"--workloads {file}", item) for item in listed]
    if not items:
        raise UsageError(
            "no workload is given; expected --cond, --then and --else, or another way that --help "
            "lists"
        )
    return [_named(flag, item) for flag, item in items]


def parse_shape(text: str) -> tuple[Dim, ...]:
    """Read a shape as far as its commas: ``"1,batch,128"``, or ``""`` for a scalar."""
    text = text.strip()
    if text[:1] + text[-1:] == "[]":  # as shapes are printed
        text = text[1:-1]
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    return tuple(int(word) if word.isascii() and word.isdigit() else word for word in words)


def read_json(flag: str, file: Path, expected: str) -> Any:
    """Read the file of a flag.

    Raises
    ------
    UsageError
        If it cannot be read, or is not JSON.
    """
    with of_flag(flag):
        data = on_disk.read(file, expected)
    return _parse_json(f"{flag} {file}", data)


def _parse_json(what: str, text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {error}") from error


def _named(flag: str, item: Any) -> tuple[str, Workload]:
    missing = [f for f in _SHAPES if not isinstance(item, dict) or f not in item]
    unknown = [] if missing else sorted(set(item) - set(_FIELDS))
    if missing or unknown:
        problem = f"lacks {missing[0]}" if missing else f"has the unknown field {unknown[0]!r}"
        raise UsageError(f"{flag}: {item!r} {problem}; expected the fields {', '.join(_FIELDS)}")
    fields = dict(item)
    name, op = fields.pop("name", None), fields.pop("op", None)
    if name is not None and not (isinstance(name, str) and name.isprintable() and name.strip()):
        raise UsageError(f"{flag}: name is {name!r}; expected a text of one line")
    check_known("--op", op, OPS)
    if op is None:
        workload = Workload(**fields)
    else:
        of = OPS[op]
        if not of.has_axis and "axis" in fields:
            raise UsageError(f"--op {op} has no axis; --axis must be left out")
        workload = Workload.of_system(
            of, **{"dtype": "float32", "auto_broadcast": of.mode, **fields}
        )
    return name or workload.name, workload
