"""The manifest of a shared library: what it holds, and what it needs.

The library holds it (`te_select.runtime.artifact.embedded`), and that is what `load` reads. The
file ``NAME.json`` beside ``NAME.so`` says the same to people and to other tools.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from te_select import kinds
from te_select.errors import ArtifactError, SelectError, caught
from te_select.kinds import Kind
from te_select.operator import family
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.runtime.artifact import files
from te_select.runtime.artifact.fields import Choice, Component, check_strings, read, typed

FORMAT = 2
_Record = TypeVar("_Record")


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
        The choice for each level but the best, by its name, if the library has several.
    c_function
        The name of its plain C function; empty if the library has none.
    names
        What the header calls that function besides, without ``te_``.
    """

    workload: Workload
    config: Mapping[str, Any]
    origin: str = "default"
    why: str = ""
    levels: Mapping[str, Choice] = field(default_factory=dict)
    c_function: str = ""
    names: tuple[str, ...] = ()

    @property
    def best(self) -> Choice:
        """The choice for the best level."""
        return Choice(self.config, self.origin, self.why)

    def at(self, level: str) -> Choice:
        """The choice for one of the library's levels."""
        return self.levels.get(level, self.best)

    def to_json(self, *, short: bool = False) -> dict[str, Any]:
        """The record as JSON types; in the short form, a level says what is new in it."""
        levels, before = {}, self.best
        for name, choice in self.levels.items():
            levels[name] = choice.to_json(before if short else None)
            before = choice
        return {
            "symbol": self.workload.name,
            **({"c_function": self.c_function} if self.c_function else {}),
            **({"names": list(self.names)} if self.names else {}),
            "workload": self.workload.to_json(),
            **self.best.to_json(),
            **({"levels": levels} if levels else {}),
        }


@dataclass(frozen=True)
class NodeRecord:
    """What a manifest says about one node of the model that the library was built for.

    Parameters
    ----------
    place, name, op, status, reason
        As a `te_select.ModelNode` has them.
    symbol
        The kernel that serves it, or `te_select.operator.family.FUNCTION`, if the family does;
        None if nothing of the library does.
    """

    place: str
    name: str
    op: str
    status: str
    reason: str
    symbol: str | None

    @classmethod
    def of(cls, node: ModelNode, *, family_serves: bool = False) -> NodeRecord:
        """Make the record of a node without a workload, which the family may serve, or with one."""
        symbol = family.FUNCTION if family_serves else None
        if node.workload is not None:
            symbol = node.workload.name
        return cls(node.place, node.name, node.op, node.status, node.reason, symbol)


@dataclass(frozen=True)
class ModelRecord:
    """What a manifest says about a model that the library was built for.

    Parameters
    ----------
    name, sha256
        As a `te_select.operator.node.ModelFile` has them.
    nodes
        How many of its nodes the library was asked for.
    """

    name: str
    sha256: str
    nodes: int


@dataclass(frozen=True)
class Manifest:
    """What a shared library holds, and what it needs.

    Parameters
    ----------
    kernels
        One record per exported kernel.
    target
        ``"name"``, the target as the user named it; ``"kind"``, the kind of machine; and the
        requirements of that kind (`te_select.kinds`). Of libraries for CPUs with several levels
        also ``"levels"``, the features that each level needs.
    versions
        Of the packages that built it.
    nodes
        The nodes of the model that it was built for, if it was built for one.
    components
        What it is made of and by.
    models
        The models that it was built for.
    """

    kernels: tuple[KernelRecord, ...]
    target: Mapping[str, Any]
    versions: Mapping[str, str]
    nodes: tuple[NodeRecord, ...] = ()
    components: tuple[Component, ...] = ()
    models: tuple[ModelRecord, ...] = ()

    @property
    def kind(self) -> Kind:
        """The kind of machine."""
        return kinds.kind(self.target["kind"])

    @property
    def c_functions(self) -> dict[Workload, str]:
        """The names of the plain C functions, by what they compute."""
        return {each.workload: each.c_function for each in self.kernels if each.c_function}

    def to_json(self, sha256: str, *, short: bool = False) -> dict[str, Any]:
        """The manifest of a library with this digest, as JSON types; see `KernelRecord.to_json`."""
        return {
            "sha256": sha256,
            "format": FORMAT,
            "kernels": [record.to_json(short=short) for record in self.kernels],
            "target": dict(self.target),
            "versions": dict(self.versions),
            **_listed("components", self.components),
            **_listed("models", self.models),
            **_listed("nodes", self.nodes),
        }

    def to_text(self, sha256: str) -> bytes:
        """The same as the file beside the library has it."""
        return (json.dumps(self.to_json(sha256), indent=1) + "\n").encode()


def c_name(workload: Workload) -> str:
    """The name of a workload's plain C function."""
    return f"te_{workload.name}"  # the name itself begins with select_


def is_c_name(name: str) -> bool:
    """Whether ``te_`` and this is a name in C that no kernel and no type of the header has."""
    return re.fullmatch(r"(?!select)[a-z_]\w*", name, re.ASCII | re.IGNORECASE) is not None


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
    except caught(ValueError, RecursionError):
        return False
    return isinstance(data, dict) and {"format", "kernels", "target", "sha256"} <= data.keys()


def parse(text: bytes, place: str) -> tuple[Manifest, str]:
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
        The manifest, and the SHA-256 of the library that it describes.

    Raises
    ------
    ArtifactError
        If it is damaged or of another format version.
    """
    try:
        data = json.loads(text)
    except caught(ValueError, RecursionError) as error:
        raise ArtifactError(f"{place} is not JSON ({error}); export it again") from error
    found = data.get("format") if isinstance(data, dict) else None
    if type(found) is not int or found != FORMAT:
        raise ArtifactError(
            f"{place} has format {found!r}; this te_select reads format {FORMAT}: export it "
            "again, or use the version that wrote it"
        )
    try:
        target = typed(data, "target", dict)
        check_strings([typed(target, "name", str)], "name")
        own = kinds.kind(typed(target, "kind", str))
        for kind in kinds.KINDS.values():
            for name, form in kind.requirements.items():
                if kind is own or name in target:
                    value = typed(target, name, form)
                    check_strings([value] if form is str else value, name)
        levels = _parse_levels(target)
        versions = typed(data, "versions", dict)
        check_strings(versions.values(), "versions")
        kernels = tuple(_parse_kernel(item, levels) for item in typed(data, "kernels", list))
        sha256 = typed(data, "sha256", str)
        if not kernels:
            raise ValueError("kernels is empty")
        if len({record.workload.name for record in kernels}) < len(kernels):
            raise ValueError("two kernels have one symbol")
        nodes = _list_of(NodeRecord, data, "nodes")
        _check_served(nodes, kernels)
        components = _list_of(Component, data, "components")
        models = _list_of(ModelRecord, data, "models")
        for each in components:
            check_strings(vars(each).values(), "component")
        for model in models:
            check_strings([model.name, model.sha256], "models")
    except caught(ValueError, TypeError, SelectError) as error:
        raise ArtifactError(f"{place} is not a manifest: {error}; export it again") from error
    return Manifest(kernels, target, versions, nodes, components, models), sha256


def _listed(name: str, items: Iterable[Any]) -> dict[str, Any]:
    """A field with dataclasses as JSON types; none if there are none."""
    found = [asdict(item) for item in items]
    return {name: found} if found else {}


def _list_of(record: type[_Record], data: Mapping[str, Any], name: str) -> tuple[_Record, ...]:
    """Read what `_listed` has written."""
    items = typed({name: [], **data}, name, list)
    return tuple(read(record, item, name.removesuffix("s")) for item in items)


def _parse_levels(target: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the levels, if there are several."""
    if "levels" not in target:
        return ()
    levels = typed(target, "levels", dict)
    if len(levels) < 2:  # noqa: PLR2004 - a library of one level has no such field
        raise ValueError(f"levels is {levels!r}, expected two or more")
    check_strings(levels, "levels")
    for name in levels:
        check_strings(typed(levels, name, list), name)
    return tuple(levels)


def _parse_kernel(item: Any, levels: tuple[str, ...]) -> KernelRecord:
    if not isinstance(item, dict):
        raise TypeError(f"kernel {item!r} is not an object")
    workload = Workload.from_json(typed(item, "workload", dict))
    symbol = typed(item, "symbol", str)
    if symbol != workload.name:
        raise ValueError(f"symbol {symbol!r} is not the name of its workload, {workload.name!r}")
    c_function = typed({"c_function": "", **item}, "c_function", str)
    if c_function not in ("", c_name(workload)):
        raise ValueError(f"c_function {c_function!r} is not {c_name(workload)!r}")
    by_level = typed({"levels": {}, **item}, "levels", dict)
    if tuple(by_level) != levels[:-1]:
        raise ValueError(f"{symbol} has the levels {list(by_level)}, expected {list(levels[:-1])}")
    best = before = Choice.parse(item)
    found = {}
    for name in by_level:
        before = found[name] = Choice.parse(typed(by_level, name, dict), before)
    names = typed({"names": [], **item}, "names", list)
    check_strings(names, "names")
    if odd := [name for name in names if not c_function or not is_c_name(name)]:
        raise ValueError(f"names holds {odd[0]!r}, expected identifiers, of a C function")
    plain = {"levels": found, "c_function": c_function, "names": tuple(names)}
    return KernelRecord(workload, **vars(best), **plain)


def _check_served(nodes: tuple[NodeRecord, ...], kernels: tuple[KernelRecord, ...]) -> None:
    symbols = {None, family.FUNCTION, *(record.workload.name for record in kernels)}
    for node in nodes:
        if node.symbol not in symbols:
            raise ValueError(
                f"node {node.place!r} is served by {node.symbol!r}, which is not there"
            )
    by_family = any(node.symbol == family.FUNCTION for node in nodes)
    if by_family and not family.held(record.workload for record in kernels):
        raise ValueError(f"nodes are served by {family.FUNCTION!r}, whose kernels are not there")
