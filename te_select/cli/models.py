"""The flags about models that the verbs share, and the output about a model's nodes."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

import te_select
from te_select.cli.console import UsageError
from te_select.cli.flags import parse_pairs
from te_select.errors import BroadcastError, DTypeError, ModelError
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import count_of
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.records.sizes import Ranges

Sizes = dict[str, tuple[int, int]]


def _formats() -> str:
    """What a model may be; te-select-runtime reads none."""
    try:
        from te_select.frontends import formats  # noqa: PLC0415
    except ModuleNotFoundError:
        return "A model."
    return formats.titles()


Model = Annotated[Path | None, Option(exists=True, help=_formats())]


@dataclass
class ModelFlags:
    """A model, and what its dims are."""

    title = "Which workloads"
    model: Model = None
    size: Annotated[
        list[str] | None,
        Option(help="Of a named dim: batch=8 (tune takes batch=1:64, too); repeatable."),
    ] = None


def read_nodes(path: Path) -> list[ModelNode]:
    """Read the nodes of a model.

    Raises
    ------
    ModelError
        If it cannot be read, or has no Where and no Select.
    """
    nodes = te_select.read_model(path)
    if not nodes:
        raise ModelError(f"{path} holds no Where and no Select")
    return nodes


def parse_sizes(texts: Sequence[str] | None, known: Collection[str]) -> Sizes:
    """Read the values of ``--size``: the least and the largest size of each dim.

    Raises
    ------
    UsageError
        If one is malformed, or names no dim that is known.
    """
    example = "batch=8, or for tune a range such as batch=1:64"
    sizes = parse_pairs("--size", texts, example, _bounds)
    if unknown := sizes.keys() - known:
        raise UsageError(
            f"--size {min(unknown)} names no dim; expected one of "
            f"{', '.join(sorted(known)) or 'none: all dims are numbers'}"
        )
    return sizes


def _bounds(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,18})(?::(\d{1,18}))?", text, re.ASCII)
    if match is None or int(match[1]) > int(match[2] or match[1]):
        raise ValueError(text)
    return int(match[1]), int(match[2] or match[1])


def at_sizes(
    workload: Workload, sizes: Sizes, place: str, *, bind: bool
) -> tuple[Workload, Ranges]:
    """Give the named dims of a workload their sizes.

    Parameters
    ----------
    workload, place
        The workload, and what it is called.
    sizes
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
    names = workload.dim_names
    ranges = tuple((name, *sizes[name]) for name in names if name in sizes)
    lacking = [name for name in names if name not in sizes]
    if bind:
        lacking += [name for name, least, most in ranges if least < most]
    if lacking and (bind or ranges):
        raise UsageError(
            f"the dims {', '.join(lacking)} of {place} have no size; expected, for example, "
            f"--size {lacking[0]}=8"
        )
    if lacking or any(least < most for _, least, most in ranges):
        return workload, ranges
    return workload.bind({name: least for name, least, _ in ranges}), ()


def describe(node: ModelNode, sizes: dict[str, int]) -> dict[str, Any]:
    """What is known about a node, as JSON types; ``bytes_per_call`` at sizes of named dims."""
    known = vars(node) | {"dims": dict(node.dims), "bytes_per_call": _bytes(node, sizes)}
    del known["model"]
    workload = known.pop("workload")
    return {**known, "symbol": None if workload is None else workload.name}


def _bytes(node: ModelNode, sizes: dict[str, int]) -> int | None:
    """Bytes that a call reads and writes at the given sizes; None if that is not known."""
    shapes = (node.cond_shape, node.then_shape, node.else_shape)
    workload = node.workload
    try:
        if node.status == "dispatched" and node.dtype and None not in shapes:
            bound = (tuple(sizes.get(str(dim), dim) for dim in shape or ()) for shape in shapes)
            cond, then, else_ = bound
            workload = Workload(cond, then, else_, node.dtype, node.auto_broadcast, node.axis)
        return None if workload is None else access_pattern(workload.bind(sizes)).bytes_moved()
    except (BroadcastError, DTypeError):  # a size is missing, or the model does not run with these
        return None


def document(
    path: Path, described: Sequence[dict[str, Any]], as_json: bool, *columns: str
) -> dict[str, Any]:
    """A model and its nodes: all that `describe` says of them as JSON types.

    For people: how many have which status, a table of some columns, why some have no kernel, and
    the meaning of their names.
    """
    if as_json:
        return {"model": path, "nodes": described}
    statuses = Counter(node["status"] for node in described).items()
    counts = ", ".join(f"{count} {status}" for status, count in statuses)
    reasons: dict[str, list[str]] = {}
    for node in described:
        if node["status"] in ("dispatched", "refused"):
            reasons.setdefault(f"{node['status']}: {node['reason']}", []).append(node["place"])
    names = {name: text for node in described for name, text in node["dims"].items()}
    return {
        "model": f"{path}: {count_of(len(described), 'node')}: {counts}",
        "nodes": [{name: node[name] for name in ("place", *columns)} for node in described],
        "reasons": [f"{', '.join(places)}: {reason}" for reason, places in reasons.items()],
        "dims": {name: text for name, text in sorted(names.items()) if name != text},
    }
