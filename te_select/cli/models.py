"""The flags about models that the verbs share, and the output about a model's nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

import te_select
from te_select.cli.console import UsageError, parse_pairs, print_line, print_table
from te_select.errors import BroadcastError, DTypeError, ModelError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import Shape, count_of, format_shape
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.runtime.artifact import files

Sizes = dict[str, tuple[int, int]]
Ranges = tuple[tuple[str, int, int], ...]
_NOT_KNOWN = "?"


def _formats() -> str:
    """What a model may be; te-select-runtime reads none."""
    try:
        from te_select.frontends import formats  # noqa: PLC0415
    except ModuleNotFoundError:
        return "A model."
    return formats.titles()


Model = Annotated[Path | None, typer.Option(help=_formats())]
Expand = Annotated[
    bool,
    typer.Option("--expand", help="With --model: look into operators that ONNX has as functions."),
]


@dataclass(frozen=True)
class ModelFlags:
    """The flags of a model whose named dims get sizes."""

    model: Model = None
    size: Annotated[
        list[str] | None,
        typer.Option(help="Size of a named dim: batch=8 (tune takes batch=1:64, too); repeatable."),
    ] = None
    expand: Expand = False


def read_nodes(path: Path, *, expand: bool = False) -> list[ModelNode]:
    """Read the nodes of a model.

    Raises
    ------
    ModelError
        If it cannot be read, or has no Where and no Select.
    """
    if files.is_missing(path):
        raise UsageError(f"--model {path} is missing; expected a model file")
    nodes = te_select.read_model(path, expand=expand)
    if not nodes:
        raise ModelError(f"{path} holds no Where and no Select")
    return nodes


def parse_sizes(texts: Sequence[str] | None, nodes: Sequence[ModelNode]) -> dict[str, int]:
    """Read the values of ``--size``, of which each is one number.

    Raises
    ------
    UsageError
        If one is malformed or a range, or names no dim of the nodes.
    """
    ranges = parse_ranges(texts, names_of(nodes))
    for name, (least, most) in ranges.items():
        if least != most:
            raise UsageError(f"--size {name}={least}:{most} is a range; expected one size")
    return {name: least for name, (least, _) in ranges.items()}


def parse_ranges(texts: Sequence[str] | None, known: Collection[str]) -> Sizes:
    """Read the values of ``--size``, which are sizes, or ranges as tuning takes them.

    Raises
    ------
    UsageError
        If one is malformed, or names no dim that is known.
    """
    example = "batch=8, or for tune a range such as batch=1:64"
    sizes: Sizes = parse_pairs("--size", texts, example, _bounds)
    for name, (least, most) in sizes.items():
        if least > most:
            raise UsageError(f"--size {name}: {least} is above {most}; expected the least first")
        if name not in known:
            raise UsageError(
                f"--size {name} names no dim; expected one of "
                f"{', '.join(sorted(known)) or 'none: all dims are numbers'}"
            )
    return sizes


def _bounds(text: str) -> tuple[int, int]:
    if (match := re.fullmatch(r"(\d{1,18})(?::(\d{1,18}))?", text, re.ASCII)) is None:
        raise ValueError(text)
    return int(match[1]), int(match[2] or match[1])


def names_of(nodes: Sequence[ModelNode]) -> set[str]:
    """The names of the dims of nodes."""
    return {name for node in nodes for name in node.dims}


def workloads_of(
    nodes: Iterable[ModelNode], sizes: Sizes, *, bind: bool
) -> list[tuple[str, Workload, Ranges]]:
    """The distinct workloads of nodes, each with the place of the first node that has it.

    Parameters
    ----------
    nodes
        The nodes; those without a workload are skipped.
    sizes
        Sizes of named dims, each the least and the largest.
    bind
        As for `at_sizes`.

    Returns
    -------
    list of tuple
        The place, and what `at_sizes` makes of the workload.

    Raises
    ------
    UsageError
        As for `at_sizes`, or if no node has a workload.
    """
    found: dict[tuple[Workload, Ranges], str] = {}
    for node in nodes:
        if node.workload is None:
            continue
        found.setdefault(at_sizes(node.workload, sizes, node.place, bind=bind), node.place)
    if not found:
        raise UsageError("no node of the model has a kernel of its own; see inspect --model")
    return [(place, *sized) for sized, place in found.items()]


def at_sizes(
    workload: Workload, known: Sizes, place: str, *, bind: bool
) -> tuple[Workload, Ranges]:
    """Give the named dims of a workload their sizes.

    Parameters
    ----------
    workload, place
        The workload, and what it is called.
    known
        Sizes, each the least and the largest.
    bind
        Whether every dim must have one size. If not, a workload without any size keeps its names.

    Returns
    -------
    tuple
        The workload with its sizes. If one is a range, the workload as it is, and the ranges.

    Raises
    ------
    UsageError
        If a dim must have one size and has none, or a range; or only some dims have a size.
    """
    missing = [name for name in workload.dim_names if name not in known]
    if missing and bind:
        raise UsageError(
            f"the dims {', '.join(missing)} of {place} have no size; expected, for "
            f"example, --size {missing[0]}=8"
        )
    if missing and len(missing) < len(workload.dim_names):
        raise UsageError(
            f"only some dims of {place} have a size; expected --size for "
            f"{', '.join(missing)} as well, or for none"
        )
    if missing:
        return workload, ()
    ranges = tuple((name, *known[name]) for name in workload.dim_names)
    if any(least < most for _, least, most in ranges):
        if bind:
            raise UsageError(f"the dims of {place} have a range; expected one size, batch=8")
        return workload, ranges
    return workload.bind({name: least for name, least, _ in ranges}), ()


def describe(node: ModelNode, sizes: dict[str, int]) -> dict[str, Any]:
    """What is known about a node, as JSON types.

    Parameters
    ----------
    node
        The node.
    sizes
        Sizes of named dims, for ``bytes_per_call``.
    """
    known = vars(node) | {"dims": dict(node.dims), "bytes_per_call": bytes_per_call(node, sizes)}
    del known["model"]
    workload = known.pop("workload")
    return {**known, "symbol": None if workload is None else workload.name}


def bytes_per_call(node: ModelNode, sizes: dict[str, int]) -> int | None:
    """Bytes that a call reads and writes at the given sizes; None if that is not known."""
    shapes = (node.cond_shape, node.then_shape, node.else_shape)
    workload = node.workload
    try:
        if node.status == "dispatched" and node.dtype and None not in shapes:
            cond, then, else_ = (_bound(shape or (), sizes) for shape in shapes)
            workload = Workload(cond, then, else_, node.dtype, "multidirectional")
        return None if workload is None else access_pattern(workload.bind(sizes)).bytes_moved()
    except (BroadcastError, DTypeError):  # a size is missing, or the model does not run with these
        return None


def counted(nodes: Sequence[ModelNode]) -> str:
    """How many nodes have which status: ``9 nodes: 4 compiled, 5 shape``."""
    by_status = (f"{n} {status}" for status, n in Counter(node.status for node in nodes).items())
    return f"{count_of(len(nodes), 'node')}: {', '.join(by_status)}"


def print_nodes(nodes: Sequence[ModelNode], sizes: dict[str, int]) -> None:
    """Print a table of nodes, the meaning of their names, and why some have no kernel."""
    headers = ("place", "node", "cond", "then", "else", "out", "type", "status", "cond made by")
    rows = []
    for node in nodes:
        moved = bytes_per_call(node, sizes)
        shapes = (node.cond_shape, node.then_shape, node.else_shape, node.out_shape)
        rows.append(
            (
                node.place,
                node.name,
                *(_NOT_KNOWN if shape is None else format_shape(shape) for shape in shapes),
                node.dtype or _NOT_KNOWN,
                node.status,
                node.cond_producer,
                _NOT_KNOWN if moved is None else str(moved),
            )
        )
    print_table((*headers, "bytes a call"), rows)
    if missing := sorted({name for node in nodes for name in _missing(node, sizes)}):
        given = " ".join(f"--size {name}=N" for name in missing)
        print_line(f"bytes a call are known with {given}")
    texts = {name: text for node in nodes for name, text in node.dims.items() if name != text}
    for name, text in sorted(texts.items()):
        print_line(f"{name}: {text}")
    reasons: dict[tuple[str, str], list[str]] = {}
    for node in nodes:
        if node.status in ("dispatched", "refused"):
            reasons.setdefault((node.status, node.reason), []).append(node.place)
    for (status, reason), places in reasons.items():
        print_line(f"{status}: {', '.join(places)}: {reason}")


def _missing(node: ModelNode, sizes: dict[str, int]) -> set[str]:
    """The names whose sizes would tell the bytes of a call, if they are not known."""
    named = node.dims.keys() - sizes.keys()
    every = sizes | dict.fromkeys(named, 1)
    known = bytes_per_call(node, sizes) is not None or bytes_per_call(node, every) is None
    return set() if known else set(named)


def _bound(shape: Shape, sizes: dict[str, int]) -> Shape:
    """A shape with names replaced by sizes, as far as these are known."""
    return tuple(sizes.get(str(dim), dim) for dim in shape)
