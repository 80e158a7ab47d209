"""The manifest of a shared library: what it holds, and what it needs.

The library holds it (`te_select.runtime.artifact.embedded`), and that is what `load` reads. The
file ``NAME.json`` beside ``NAME.so`` says the same to people and to other tools.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from te_select.base import kinds
from te_select.errors import ArtifactError, caught
from te_select.operator import family
from te_select.operator.node import ModelNode
from te_select.operator.workload import Workload
from te_select.runtime.artifact.fields import Choice, Component, Line, read

FORMAT = 2
_LISTED = ("components", "models", "nodes")
_OPTIONAL = {*_LISTED, "stages", "c_function", "names", "levels"}  # left out if they are empty


@dataclass(frozen=True)
class KernelRecord:
    """What a manifest says about one kernel.

    Parameters
    ----------
    workload
        What it computes; the exported symbol is ``workload.name``.
    best
        The choice for it; of several levels, for the best.
    levels
        The choice for each level but the best, by its name, if the library has several.
    c_function
        The name of its plain C function; empty if the library has none.
    names
        What the header calls that function besides, without ``te_``.
    """

    workload: Workload
    best: Choice
    levels: Mapping[str, Choice] = field(default_factory=dict)
    c_function: str = ""
    names: tuple[str, ...] = ()

    def at(self, level: str) -> Choice:
        """The choice for one of the library's levels."""
        return self.levels.get(level, self.best)

    def to_json(self, *, short: bool = False) -> dict[str, Any]:
        """The record as JSON types; in the short form, a level says what is new in it."""
        levels = {}
        before = self.best
        for name, choice in self.levels.items():
            levels[name] = choice.to_json(before if short else None)
            before = choice
        return _without_empty(
            symbol=self.workload.name,
            c_function=self.c_function,
            names=list(self.names),
            workload=self.workload.to_json(),
            **self.best.to_json(),
            levels=levels,
        )

    @classmethod
    def from_json(cls, item: Mapping[str, Any]) -> "KernelRecord":
        """Read what `to_json` wrote, in either form."""
        workload = read(Workload, item.get("workload"), "workload")
        names = read(tuple[Line, ...], item.get("names", []), "names")
        if odd := [name for name in names if not is_c_name(name)]:
            raise ValueError(f"names holds {odd[0]!r}, expected identifiers")
        best = before = Choice.parse(item)
        levels = {}
        said = read(Mapping[str, Mapping[str, Any]], item.get("levels", {}), "levels")
        for level, changed in said.items():
            before = levels[level] = Choice.parse(changed, before)
        return cls(workload, best, levels, c_name(workload) if "c_function" in item else "", names)


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
    def of(cls, node: ModelNode, *, family_serves: bool = False) -> "NodeRecord":
        """Make the record of a node without a workload, which the family may serve, or with one."""
        of_family = family.FUNCTION if family_serves else None
        symbol = of_family if node.workload is None else node.workload.name
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

    name: Line
    sha256: Line
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
        requirements of that kind (`te_select.backends`). Of libraries for CPUs with several levels
        also ``"levels"``, the features that each level needs.
    versions
        Of the packages that built it.
    nodes
        The nodes of the model that it was built for, if it was built for one.
    components
        What it is made of and by.
    models
        The models that it was built for.
    stages
        The conversions that it does on the way, by `te_select.operator.stages.Stage.name`.
    """

    kernels: tuple[KernelRecord, ...]
    target: Mapping[str, Any]
    versions: Mapping[str, Line]
    nodes: tuple[NodeRecord, ...] = ()
    components: tuple[Component, ...] = ()
    models: tuple[ModelRecord, ...] = ()
    stages: tuple[Line, ...] = ()

    @property
    def kind(self) -> kinds.Kind:
        """The kind of machine."""
        return kinds.kind(self.target["kind"])

    @property
    def c_functions(self) -> dict[Workload, str]:
        """The names of the plain C functions, by what they compute."""
        return {each.workload: each.c_function for each in self.kernels if each.c_function}

    def to_json(self, sha256: str, *, short: bool = False) -> dict[str, Any]:
        """The manifest of a library with this digest, as JSON types; see `KernelRecord.to_json`."""
        listed = {name: [asdict(each) for each in getattr(self, name)] for name in _LISTED}
        return _without_empty(
            sha256=sha256,
            format=FORMAT,
            kernels=[record.to_json(short=short) for record in self.kernels],
            target=dict(self.target),
            versions=dict(self.versions),
            **listed,
            stages=list(self.stages),
        )

    def to_text(self, sha256: str) -> bytes:
        """The same as the file beside the library has it."""
        return (json.dumps(self.to_json(sha256), indent=1) + "\n").encode()


def _without_empty(**fields: Any) -> dict[str, Any]:
    """The fields of a record, without the optional ones that are empty."""
    return {name: value for name, value in fields.items() if value or name not in _OPTIONAL}


def c_name(workload: Workload) -> str:
    """The name of a workload's plain C function."""
    return f"te_{workload.name}"  # the name itself begins with select_


def is_c_name(name: str) -> bool:
    """Whether ``te_`` and this is a name in C that no kernel and no type of the header has."""
    return re.fullmatch(r"(?!select)[a-z_]\w*", name, re.ASCII | re.IGNORECASE) is not None


def parse(text: bytes, place: str) -> tuple[Manifest, str]:
    """Read a manifest. What it says is taken for true: the digest of its library is checked before.

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
        If it is damaged, of another format version, or older than te-select 0.3.
    """
    try:
        data = json.loads(text)
        form = data.get("format") if isinstance(data, dict) else None
        if type(form) is not int or form != FORMAT:
            raise ArtifactError(
                f"{place} has format {form!r}; this te_select reads format {FORMAT}: export it "
                "again, or use the version that wrote it"
            )
        found: Manifest = read(Manifest, data, "it")
        maker = found.versions.get("te_select", "")
        if maker.startswith(("0.1.", "0.2.")):
            raise ArtifactError(f"{place} is of te-select {maker}; export it again")
        target = found.target
        read(Line, target.get("name"), "name")
        for name, of in kinds.kind(read(str, target.get("kind"), "kind")).requirements.items():
            read(Line if of is str else tuple[Line, ...], target.get(name), name)
        levels = list(read(Mapping[str, tuple[Line, ...]], target.get("levels", {}), "levels"))
        if len(levels) == 1:  # a library of one level has no such field
            raise ValueError(f"levels is {levels}, expected two or more")
        for names in (list(kernel.levels) for kernel in found.kernels):
            if names != levels[:-1]:
                raise ValueError(f"a kernel has the levels {names}, expected {levels[:-1]}")
        return found, read(str, data.get("sha256"), "sha256")
    except caught(ValueError, TypeError, RecursionError) as error:
        raise ArtifactError(f"{place} is not a manifest: {error}; export it again") from error
