"""The manifest of a shared library: what it holds, and what it needs.

The library holds it (`te_select.runtime.embedded`), and that is what `load` reads. The file
``NAME.json`` beside ``NAME.so`` says the same to people and to other tools. In the first format it
was the manifest, and the library held none.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from te_select import kinds
from te_select.errors import ArtifactError, SelectError
from te_select.kinds import Kind
from te_select.operator import family
from te_select.operator.node import Node
from te_select.operator.workload import Workload
from te_select.runtime import files
from te_select.runtime.component import Component

FORMAT, FIRST_FORMAT = 2, 1
_NODE_TEXTS = ("place", "name", "op", "status", "reason")


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
        The reason for that, in one line; empty where nobody wrote it down.
    """

    config: Mapping[str, Any]
    origin: str = "default"
    why: str = ""


@dataclass(frozen=True)
class KernelRecord:
    """What a manifest says about one kernel.

    Parameters
    ----------
    workload
        What it computes; the exported symbol is ``workload.name``.
    config, origin, why
        As a `Choice` has them. Of several levels, the choice for the best.
    levels
        The choice for each level but the best, by its name, where the library has several.
    c_function
        The name of its plain C function; empty where the library has none.
    """

    workload: Workload
    config: Mapping[str, Any]
    origin: str = "default"
    why: str = ""
    levels: Mapping[str, Choice] = field(default_factory=dict)
    c_function: str = ""

    def at(self, level: str) -> Choice:
        """The choice for one of the library's levels."""
        return self.levels.get(level, Choice(self.config, self.origin, self.why))


@dataclass(frozen=True)
class NodeRecord:
    """What a manifest says about one node of the model that the library was built for.

    Parameters
    ----------
    place, name, op, status, reason
        As a `te_select.ModelNode` has them.
    symbol
        The kernel that serves it, or `te_select.operator.family.FUNCTION`, where the family does;
        None where nothing of the library does.
    """

    place: str
    name: str
    op: str
    status: str
    reason: str
    symbol: str | None

    @classmethod
    def of(cls, node: Node, *, family_serves: bool = False) -> NodeRecord:
        """Make the record of a node without a workload, which the family may serve, or with one."""
        symbol = family.FUNCTION if family_serves else None
        if node.workload is not None:
            symbol = node.workload.name
        return cls(node.place, node.name, node.op, node.status, node.reason, symbol)


@dataclass(frozen=True)
class Manifest:
    """What a shared library holds, and what it needs.

    Parameters
    ----------
    kernels
        One record per exported kernel.
    target
        ``"name"``, the target as the user named it; ``"kind"``, the kind of machine, of which
        the first manifests said nothing; and the requirements of that kind (`te_select.kinds`).
        Of libraries for CPUs also ``"architecture"``, as ``uname -m`` says it, and ``"levels"``,
        the features that each level needs, where there are several; the first had neither.
    versions
        Of the packages that built it.
    nodes
        The nodes of the model that it was built for, where it was built for one.
    components
        What it is made of and by; older libraries do not say.
    """

    kernels: tuple[KernelRecord, ...]
    target: Mapping[str, Any]
    versions: Mapping[str, str]
    nodes: tuple[NodeRecord, ...] = ()
    components: tuple[Component, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind of machine."""
        return kinds.of_manifest(self.target)

    @property
    def c_functions(self) -> dict[Workload, str]:
        """The names of the plain C functions, by what they compute."""
        return {each.workload: each.c_function for each in self.kernels if each.c_function}

    def to_json(self, sha256: str) -> dict[str, Any]:
        """The manifest of a library with this digest, as JSON types."""
        return {
            "sha256": sha256,
            "format": FORMAT,
            "kernels": [
                {
                    "symbol": record.workload.name,
                    **({"c_function": record.c_function} if record.c_function else {}),
                    "workload": record.workload.to_json(),
                    "config": dict(record.config),
                    "origin": record.origin,
                    "why": record.why,
                    **_levels_to_json(record.levels),
                }
                for record in self.kernels
            ],
            "target": dict(self.target),
            "versions": dict(self.versions),
            **_listed("components", self.components),
            **_listed("nodes", self.nodes),
        }

    def to_text(self, sha256: str) -> bytes:
        """The same as the file beside the library has it."""
        return (json.dumps(self.to_json(sha256), indent=1) + "\n").encode()


def c_name(workload: Workload) -> str:
    """The name of a workload's plain C function."""
    return f"te_{workload.name}"  # the name itself begins with select_


def manifest_path(path: str | os.PathLike[str]) -> Path:
    """Where the manifest of the shared library ``path`` lies.

    Raises
    ------
    ArtifactError
        If it is no path, or does not end in .so.
    """
    return files.library_path(path).with_suffix(".json")


def is_manifest(text: bytes) -> bool:
    """Whether a text is a manifest, be what it says damaged or of another version."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"format", "kernels", "target", "sha256"} <= data.keys()


def parse(text: bytes, place: str) -> tuple[Manifest, str, int]:
    """Read a manifest.

    Parameters
    ----------
    text
        The JSON text.
    place
        Where it was found, for messages.

    Returns
    -------
    tuple
        The manifest, the SHA-256 of the library it describes, and its format.

    Raises
    ------
    ArtifactError
        If it is damaged or of another format version.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{place} is not JSON ({error}); export it again") from error
    found = data.get("format") if isinstance(data, dict) else None
    if type(found) is not int or found not in (FORMAT, FIRST_FORMAT):
        raise ArtifactError(
            f"{place} has format {found!r}; this te_select reads formats {FIRST_FORMAT} and "
            f"{FORMAT}: export it again, or use the version that wrote it"
        )
    try:
        target = _typed(data, "target", dict)
        _typed(target, "name", str)
        if "kind" in target:
            _typed(target, "kind", str)
        needed = kinds.of_manifest(target).requirements
        for each in (name for kind in kinds.KINDS.values() for name in kind.requirements):
            if each in needed or each in target:
                _strings(_typed(target, each, list), each)
        levels = _parse_levels(target)
        versions = _typed(data, "versions", dict)
        _strings(versions.values(), "versions")
        kernels = tuple(_parse_kernel(item, levels) for item in _typed(data, "kernels", list))
        sha256 = _typed(data, "sha256", str)
        if not kernels:
            raise ValueError("kernels is empty")
        symbols = {record.workload.name for record in kernels}
        if len(symbols) < len(kernels):
            raise ValueError("two kernels have one symbol")
        nodes = tuple(
            _parse_node(item, symbols | {family.FUNCTION})
            for item in _typed({"nodes": []} | data, "nodes", list)
        )
        if any(node.symbol == family.FUNCTION for node in nodes):
            _check_family(kernels)
        listed = _typed({"components": []} | data, "components", list)
        components = tuple(map(Component.from_json, listed))
    except (ValueError, TypeError, SelectError) as error:
        raise ArtifactError(f"{place} is not a manifest: {error}; export it again") from error
    return Manifest(kernels, target, versions, nodes, components), sha256, found


def _listed(name: str, items: Iterable[Any]) -> dict[str, Any]:
    """A field with dataclasses as JSON types; none where there are none."""
    found = [asdict(item) for item in items]
    return {name: found} if found else {}


def _parse_levels(target: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the levels, where there are several; also checks the architecture."""
    if "architecture" in target:
        _strings([_typed(target, "architecture", str)], "architecture")
    if "levels" not in target:
        return ()
    levels = _typed(target, "levels", dict)
    if len(levels) < 2:  # noqa: PLR2004 - a library of one level has no such field
        raise ValueError(f"levels is {levels!r}, expected two or more")
    _strings(levels, "levels")
    for name in levels:
        _strings(_typed(levels, name, list), name)
    return tuple(levels)


def _parse_kernel(item: Any, levels: tuple[str, ...]) -> KernelRecord:
    if not isinstance(item, dict):
        raise TypeError(f"kernel {item!r} is not an object")
    workload = Workload.from_json(_typed(item, "workload", dict))
    symbol = _typed(item, "symbol", str)
    if symbol != workload.name:
        raise ValueError(f"symbol {symbol!r} is not the name of its workload, {workload.name!r}")
    c_function = _typed({"c_function": "", **item}, "c_function", str)
    if c_function not in ("", c_name(workload)):
        raise ValueError(f"c_function {c_function!r} is not {c_name(workload)!r}")
    by_level = _typed({"levels": {}, **item}, "levels", dict)
    if tuple(by_level) != levels[:-1]:
        raise ValueError(f"{symbol} has the levels {list(by_level)}, expected {list(levels[:-1])}")
    choices = {name: _parse_choice(_typed(by_level, name, dict)) for name in by_level}
    best = _parse_choice(item)
    return KernelRecord(workload, best.config, best.origin, best.why, choices, c_function)


def _parse_choice(item: Mapping[str, Any]) -> Choice:
    why = _typed({"why": "", **item}, "why", str)  # the first libraries were written without it
    return Choice(_typed(item, "config", dict), _typed(item, "origin", str), why)


def _levels_to_json(levels: Mapping[str, Choice]) -> dict[str, Any]:
    found = {
        name: {**vars(choice), "config": dict(choice.config)} for name, choice in levels.items()
    }
    return {"levels": found} if found else {}


def _check_family(kernels: tuple[KernelRecord, ...]) -> None:
    if not family.held(record.workload for record in kernels):
        raise ValueError(f"nodes are served by {family.FUNCTION!r}, whose kernels are not there")


def _parse_node(item: Any, symbols: set[str]) -> NodeRecord:
    if not isinstance(item, dict):
        raise TypeError(f"node {item!r} is not an object")
    symbol = item.get("symbol")
    if symbol is not None and symbol not in symbols:
        raise ValueError(f"node {item.get('place')!r} is served by {symbol!r}, which is not there")
    texts = {field: _typed(item, field, str) for field in _NODE_TEXTS}
    return NodeRecord(**texts, symbol=symbol)


def _typed(data: Mapping[str, Any], key: str, kind: type) -> Any:
    value = data.get(key)
    if not isinstance(value, kind):
        raise TypeError(f"{key} is {value!r}, expected a {kind.__name__}")
    return value


def _strings(values: Any, key: str) -> None:
    for value in values:
        if not isinstance(value, str) or not value.isprintable():
            raise TypeError(f"{key} holds {value!r}, expected strings of one line")
