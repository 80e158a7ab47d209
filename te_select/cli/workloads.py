"""The workload flags that the verbs share."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from te_select.cli.console import UsageError, check_known, parse_with
from te_select.errors import ArtifactError
from te_select.operator.broadcast import RULES, Dim
from te_select.operator.systems import OPS
from te_select.operator.workload import Workload
from te_select.runtime.artifact import files

_DIM = re.compile(r"\s*(?:(\d+)|([A-Za-z_]\w*))\s*", re.ASCII)
_OPERANDS = ("cond", "then", "else")
_SHAPES = tuple(f"{name}_shape" for name in _OPERANDS)
_FIELDS = (*_SHAPES, "dtype", "auto_broadcast", "axis", "op", "name")


@dataclass(frozen=True)
class WorkloadFlags:
    """The flags of one workload."""

    cond: Annotated[str | None, typer.Option(help='Shape of cond: 1,batch,128; "" scalar.')] = None
    then: Annotated[str | None, typer.Option(help="Shape of then.")] = None
    else_: Annotated[str | None, typer.Option("--else", help="Shape of else.")] = None
    dtype: Annotated[str | None, typer.Option(help="Element type; default float32.")] = None
    op: Annotated[str | None, typer.Option(help="A system's rule: onnx, openvino or onednn.")] = (
        None
    )
    auto_broadcast: Annotated[
        str | None, typer.Option(help="none, numpy, pdpd or multidirectional; default numpy.")
    ] = None
    axis: Annotated[int | None, typer.Option(help="Under pdpd, where else and cond start.")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The values of the flags that are given, by name."""
        return {name.strip("_"): each for name, each in vars(self).items() if each is not None}


@dataclass(frozen=True)
class WorkloadsFlags(WorkloadFlags):
    """The flags of one workload or of several."""

    workload: Annotated[
        list[str] | None,
        typer.Option(help='As JSON: {"cond_shape": [4], "then_shape": ...}; repeatable.'),
    ] = None
    workloads: Annotated[
        Path | None, typer.Option(help="A file with a JSON list of workloads.")
    ] = None


def gather(given: dict[str, Any]) -> list[Workload]:
    """The workloads of `gather_named`, without names."""
    return [workload for _, workload in gather_named(given)]


def gather_named(given: dict[str, Any]) -> list[tuple[str, Workload]]:
    """Make all workloads that the command line names.

    Parameters
    ----------
    given
        The flags of `WorkloadsFlags` that are given, by name.

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
    made: list[tuple[str, Workload]] = []
    plain = {name: value for name, value in given.items() if not name.startswith("workload")}
    if plain:
        missing = [f"--{name}" for name in _OPERANDS if name not in plain]
        if missing:
            raise UsageError(
                f'no {", ".join(missing)}; expected a shape such as 1,batch,128, or "" for a scalar'
            )
        for name in _OPERANDS:
            plain[f"{name}_shape"] = parse_with(parse_shape, f"--{name}", plain.pop(name))
        workload = _make(plain)
        made.append((workload.name, workload))
    for text in given.get("workload", ()):
        made.append(_named(parse_with(_load_json, "--workload", text), "--workload"))
    if (file := given.get("workloads")) is not None:
        items = read_json("--workloads", file, "a JSON list of workloads")
        if not isinstance(items, list):
            raise UsageError(f"--workloads {file} holds no list; expected [{{...}}, ...]")
        made += [_named(item, f"--workloads {file}") for item in items]
    if not made:
        raise UsageError(
            "no workload is given; expected --cond, --then and --else, --workload JSON, or another "
            "way that --help lists"
        )
    return made


def parse_shape(text: str) -> tuple[Dim, ...]:
    """Read a shape: ``"1,batch,128"``, or ``""`` for a scalar.

    Raises
    ------
    ValueError
        If it is malformed.
    """
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):  # as shapes are printed
        text = text[1:-1].strip()
    if not text:
        return ()
    dims: list[Dim] = []
    for word in text.split(","):
        match = _DIM.fullmatch(word)
        if match is None:
            raise ValueError(
                f"is not a shape ({word!r} is neither a size nor a name); expected a comma list "
                f'such as 1,batch,128, with a name for a size that is known at the call, or "" '
                f"for a scalar"
            )
        dims.append(int(match[1]) if match[1] else match[2])
    return tuple(dims)


def read_json(flag: str, file: Path, expected: str) -> Any:
    """Read the file of a flag.

    Raises
    ------
    UsageError
        If it cannot be read, or is not JSON.
    """
    try:
        text = files.read(file, expected).decode()
    except ArtifactError as error:
        raise UsageError(f"{flag} {error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{flag} {file} is not text: {error}; expected JSON") from error
    return parse_with(_load_json, f"{flag} {file}:", text)


def _load_json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise UsageError(
            "a JSON value is nested too deeply; expected an object of 8 fields"
        ) from error
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from error


def _named(item: Any, flag: str) -> tuple[str, Workload]:
    fields = _fields(item, flag)
    name = fields.pop("name", None)
    if name is not None and not (isinstance(name, str) and name.isprintable() and name.strip()):
        raise UsageError(f"{flag}: name is {name!r}; expected a text of one line")
    workload = _make(fields)
    return name or workload.name, workload


def _fields(item: Any, flag: str) -> dict[str, Any]:
    missing = [f for f in _SHAPES if not isinstance(item, dict) or f not in item]
    unknown = [] if missing else sorted(set(item) - set(_FIELDS))
    if missing or unknown:
        problem = f"lacks {missing[0]}" if missing else f"has the unknown field {unknown[0]!r}"
        raise UsageError(f"{flag}: {item!r} {problem}; expected the fields {', '.join(_FIELDS)}")
    return dict(item)


def _make(fields: dict[str, Any]) -> Workload:
    op, rule = fields.pop("op", None), fields.get("auto_broadcast")
    check_known("--op", op, OPS)
    if rule is not None and rule not in RULES:
        raise UsageError(f"--auto-broadcast {rule!r} is not known; expected {', '.join(RULES)}")
    if op is None:
        return Workload(**fields)
    of = OPS[op]
    if not of.has_modes and (rule is not None or "axis" in fields):
        raise UsageError(f"--op {op} has one rule; --auto-broadcast and --axis must be left out")
    if not of.has_axis and "axis" in fields:
        raise UsageError(f"--op {op} has no axis; --axis must be left out")
    return Workload.of_system(of, **{"dtype": "float32", "auto_broadcast": of.mode, **fields})
