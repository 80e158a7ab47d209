"""Loading: makes kernels from a shared library that holds its manifest, without a compiler."""

import difflib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import tvm_ffi

from te_select.base import kinds, on_disk
from te_select.errors import ArtifactError, caught
from te_select.operator import family
from te_select.operator.broadcast import printable, shown
from te_select.runtime.artifact import stored
from te_select.runtime.artifact.manifest import Manifest, NodeRecord
from te_select.runtime.call import image
from te_select.runtime.call.kernel import Kernel

_NAMES_SHOWN = 3  # names of kernels in the message about a missing one


class Library(Mapping[str, Kernel]):
    """The kernels of a shared library that holds several, by the names of their workloads.

    If the library was built for a model, ``library["attn_where"]`` is the kernel of the node of
    that name, and ``library["graph#56"]`` of the node at that place. ``in``, ``len`` and iteration
    know the names of workloads only.
    """

    def __init__(
        self,
        path: Path,
        kernels: Mapping[str, Kernel],
        packed: Callable[[], tuple[Any, ...]],
        nodes: Sequence[NodeRecord] = (),
    ) -> None:
        self.path = path
        self._packed = packed
        self._kernels = dict(kernels)
        self._nodes = nodes

    def __getitem__(self, name: str) -> Kernel:
        return self._kernels[name] if name in self._kernels else self._of_node(name)

    def _of_node(self, name: str) -> Kernel:
        """The kernel of the node at a place, else of the nodes of a name."""
        nodes = [node for node in self._nodes if node.place == name]
        nodes = nodes or [node for node in self._nodes if node.name == name != ""]
        symbols = {node.symbol for node in nodes}
        if len(symbols) == 1 and (kernel := self._kernels.get(nodes[0].symbol or "")):
            return kernel
        if len(symbols) > 1:
            places = ", ".join(node.place for node in nodes)
            problem = f"is the name of {len(nodes)} nodes that differ in kernel; expected a place: "
            raise KeyError(f"{shown(name)} {problem}{printable(places)}")
        if nodes:
            status, reason = nodes[0].status, nodes[0].reason
            how = f"its status is {status}: {reason}"
            if nodes[0].symbol == family.FUNCTION:
                how += "; te_select.where.use takes the kernels that serve it"
            raise KeyError(f"the node {shown(name)} has no kernel of its own, {printable(how)}")
        names = dict.fromkeys([*self._kernels, *(node.name for node in self._nodes)])
        near = difflib.get_close_matches(str(name), names, _NAMES_SHOWN)
        listed = ", ".join(near or list(self._kernels)[:_NAMES_SHOWN])
        raise KeyError(
            f"{shown(name)} is none of the {len(self)} kernels of {self.path}; expected one such "
            f"as {printable(listed)}"
        )

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._packed()

    def __repr__(self) -> str:
        return f"Library({str(self.path)!r}, {len(self)} kernels)"


def load(path: str | os.PathLike[str]) -> Kernel | Library:
    """Load an artifact, without tvm and without a compiler.

    The file is opened once, and exactly the bytes that were checked run. If the file is replaced
    meanwhile, either the old or the new library is loaded, as a whole.

    Parameters
    ----------
    path
        The ``.so``. If there is none, ``mask.so`` stands for the one of this machine, such as
        ``mask.x86_64.so``, as an export for several instruction sets writes it.

    Returns
    -------
    Kernel or Library
        The kernel, or a mapping of names to kernels if there is not exactly one.

    Raises
    ------
    ArtifactError
        If a file is missing, damaged, of another format version or not for this CPU, or the system
        cannot load it.
    ArgumentError
        If ``TE_SELECT_NUM_THREADS`` is no positive whole number, ``TE_SELECT_PROFILE`` no list of
        decisions or ``TE_SELECT_LEVEL`` none of the levels, and the library is for CPUs.
    """
    path = on_disk.library_here(path)
    return _loaded(stored.read(path), path)


def load_image(data: bytes, path: str | Path) -> Kernel | Library:
    """Load an artifact from its bytes, as `load` does from a file; ``path`` is where they lay."""
    return _loaded(stored.from_bytes(data, str(path)), Path(path))


def class_here(manifest: Manifest, path: Path) -> type[Kernel]:
    """The class of a library's kernels, found without its code.

    Raises
    ------
    ArtifactError
        If this machine cannot run the library.
    """
    target = manifest.target
    found: type[Kernel] = kinds.load(manifest.kind.kernel)
    if missing := found.missing(target):
        raise ArtifactError(
            f"{path} was compiled for {target['name']} and this CPU lacks {', '.join(missing)}; "
            "compile it for a target that this CPU can run, or load it on one that has them"
        )
    return found


def _loaded(found: stored.Stored, path: Path) -> Kernel | Library:
    make = class_here(found.manifest, path)
    module, code = image.load(found, path)
    find = functools.partial(_function, module, path)
    level = make.level_of(found.manifest.target, find)
    in_effect = make.prepare(find)
    kernels: dict[str, Kernel] = {}
    for record in found.manifest.kernels:
        name = record.workload.name
        alone = replace(found.manifest, kernels=(record,), nodes=())
        kernels[name] = make(
            record,
            alone,
            code=code,
            path=path,
            level=level,
            library=found,
            packed=functools.partial(_packed, found, alone, path),
            find=find,
            in_effect=in_effect,
        )
    if len(kernels) == 1:
        return next(iter(kernels.values()))
    packed = functools.partial(_packed, found, found.manifest, path)
    return Library(path, kernels, packed, found.manifest.nodes)


def _packed(library: stored.Stored, manifest: Manifest, path: Path) -> tuple[Any, ...]:
    """What pickle and copy take for a kernel or a library: the bytes of its artifact."""
    return load_image, (library.alone(manifest).image, str(path))


def _function(module: tvm_ffi.Module, path: Path, name: str) -> tvm_ffi.Function:
    try:
        return module.get_function(name)
    except caught(AttributeError) as error:
        raise ArtifactError(f"{path} has no function {name}; export it again") from error
