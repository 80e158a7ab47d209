"""Artifacts: a shared library ``NAME.so`` and, beside it, its manifest ``NAME.json``."""

from __future__ import annotations

import difflib
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tvm_ffi

from te_select import scratch
from te_select.broadcast import shown
from te_select.errors import ArgumentError, ArtifactError, SelectError
from te_select.runtime import cpu, files
from te_select.runtime.cuda_kernel import CudaKernel
from te_select.runtime.kernel import Kernel
from te_select.workload import Workload

FORMAT = 1
_THREADS = "TE_SELECT_NUM_THREADS"
_NAMES_SHOWN = 3  # of a library's kernels, where one is asked for that it lacks
_KERNELS: Mapping[Any, type[Kernel]] = {"x86": Kernel, "cuda": CudaKernel}

_in_forked_child = False


def _mark_child() -> None:
    global _in_forked_child  # noqa: PLW0603 - the state of the process
    _in_forked_child = True


# A library that is loaded in a forked child cannot know that libgomp's threads have died.
os.register_at_fork(after_in_child=_mark_child)


@dataclass(frozen=True)
class KernelRecord:
    """What a manifest says about one kernel.

    Parameters
    ----------
    workload
        What it computes; the exported symbol is ``workload.name``.
    config
        The knobs of the schedule it was built with, as JSON types.
    origin
        Where the config comes from: ``"default"``, ``"tuned:<record>"`` or ``"nearest:<record>"``.
    why
        The reason for that, in one line; empty where nobody wrote it down.
    """

    workload: Workload
    config: Mapping[str, Any]
    origin: str = "default"
    why: str = ""


@dataclass(frozen=True)
class Manifest:
    """What a shared library holds, and what it needs.

    Parameters
    ----------
    kernels
        One record per exported kernel.
    target
        ``"name"``, the target as the user named it; ``"cpu_features"``, the flags of
        ``/proc/cpuinfo`` without which the code dies; ``"kind"``, the kind of machine, ``"x86"``
        where it is missing; and of CUDA ``"archs"``, those with machine code.
    versions
        Of the packages that built it.
    """

    kernels: tuple[KernelRecord, ...]
    target: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def kind(self) -> str:
        """The kind of machine: ``"x86"`` or ``"cuda"``."""
        kind: str = self.target.get("kind", "x86")
        return kind

    def to_json(self, sha256: str) -> dict[str, Any]:
        """The manifest of a library with this hash, as JSON types."""
        return {
            "format": FORMAT,
            "kernels": [
                {
                    "symbol": record.workload.name,
                    "workload": record.workload.to_json(),
                    "config": dict(record.config),
                    "origin": record.origin,
                    "why": record.why,
                }
                for record in self.kernels
            ],
            "target": dict(self.target),
            "versions": dict(self.versions),
            "sha256": sha256,
        }


class Library(Mapping[str, Kernel]):
    """The kernels of a shared library that holds many, by the names of their workloads."""

    def __init__(self, path: Path, kernels: Mapping[str, Kernel]) -> None:
        self.path = path
        self._kernels = dict(kernels)

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._kernels[name]
        except KeyError:
            near = difflib.get_close_matches(str(name), self._kernels, _NAMES_SHOWN)
            names = ", ".join(near or list(self._kernels)[:_NAMES_SHOWN])
            raise KeyError(
                f"{name!r} is none of the {len(self)} kernels of {self.path}; expected one such as "
                f"{names}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._kernels

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return f"Library({str(self.path)!r}, {len(self)} kernels)"


def manifest_path(path: str | os.PathLike[str]) -> Path:
    """Where the manifest of the shared library ``path`` lies.

    Raises
    ------
    ArtifactError
        If it is no path, or does not end in .so.
    """
    return files.library_path(path).with_suffix(".json")


def write(so: str | os.PathLike[str], manifest: Manifest) -> None:
    """Write the manifest beside a shared library that has just been linked.

    Parameters
    ----------
    so
        The library.
    manifest
        What it holds.

    Raises
    ------
    ArtifactError
        If the library cannot be read or the manifest not written.
    """
    path = files.library_path(so)
    text = _manifest_text(manifest, hashlib.sha256(files.read(path)).hexdigest())
    files.replace(manifest_path(path), text)


def export(
    src_so: str | os.PathLike[str], manifest: Manifest, path: str | os.PathLike[str]
) -> Path:
    """Copy a shared library and its manifest to ``path``, atomically.

    Parameters
    ----------
    src_so
        The library to copy.
    manifest
        What it holds.
    path
        Where to; ends in .so. Missing folders are made. What lies there is replaced, also if it is
        loaded: files are written beside it and renamed.

    Returns
    -------
    Path
        Where the library now lies.

    Raises
    ------
    ArtifactError
        If the path does not end in .so, or a file cannot be read or written.
    """
    return _save(files.read(files.library_path(src_so)), manifest, path)


def load(path: str | os.PathLike[str]) -> Kernel | Library:
    """Load an artifact, without tvm and without a compiler.

    Parameters
    ----------
    path
        The ``.so``; its manifest lies beside it.

    Returns
    -------
    Kernel or Library
        The kernel, or a mapping of names to kernels where there is not exactly one.

    Raises
    ------
    ArtifactError
        If a file is missing, damaged, of another format version or not for this CPU, or the system
        cannot load it.
    ArgumentError
        If ``TE_SELECT_NUM_THREADS`` is no positive whole number, and the library is for CPUs.
    """
    path = files.library_path(path)
    manifest, sha256 = read_manifest(path)
    image = files.read(path)
    if hashlib.sha256(image).hexdigest() != sha256:
        raise ArtifactError(
            f"{path} is not the library its manifest describes (the SHA-256 differs): it is "
            "truncated or was changed; export it again"
        )
    if missing := cpu.missing(manifest.target["cpu_features"]):
        raise ArtifactError(
            f"{path} was compiled for {manifest.target['name']} and this CPU lacks "
            f"{', '.join(missing)}; compile it for a target that this CPU can run"
        )
    make = _KERNELS[manifest.kind]
    if make is Kernel:
        _check_thread_count()
    module = _open(path)
    if _in_forked_child and make is Kernel:
        _function(module, "te_select_run_serially", path)()
    kernels: dict[str, Kernel] = {}
    for record in manifest.kernels:
        name = record.workload.name
        alone = Manifest((record,), manifest.target, manifest.versions)
        kernels[name] = make(
            record.workload,
            target=manifest.target["name"],
            config=record.config,
            origin=record.origin,
            function=_function(module, name, path),
            bits=_function(module, f"{name}__bits", path),
            path=path,
            # The bytes are kept, so that exporting does not depend on what happens to the file.
            exporter=functools.partial(_save, image, alone),
        )
    return next(iter(kernels.values())) if len(kernels) == 1 else Library(path, kernels)


def _save(image: bytes, manifest: Manifest, path: str | os.PathLike[str]) -> Path:
    path = files.library_path(path)
    if files.is_folder(manifest_path(path)):
        raise ArtifactError(f"{manifest_path(path)} cannot be written: it is a folder")
    text = _manifest_text(manifest, hashlib.sha256(image).hexdigest())
    files.replace_all({path: image, manifest_path(path): text})
    return path


def _manifest_text(manifest: Manifest, sha256: str) -> bytes:
    return (json.dumps(manifest.to_json(sha256), indent=1) + "\n").encode()


def read_manifest(so: str | os.PathLike[str]) -> tuple[Manifest, str]:
    """Read the manifest beside a shared library, without loading the library.

    Returns
    -------
    tuple
        The manifest, and the SHA-256 of the library it describes.

    Raises
    ------
    ArtifactError
        If it is missing, damaged or of another format version.
    """
    path = manifest_path(so)
    if files.is_missing(path) and files.is_missing(Path(so)):
        raise ArtifactError(f"{so} is missing; expected a library, as te_select.export makes it")
    text = files.read(path, "the manifest that belongs beside the .so")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is not JSON ({error}); export it again") from error
    found = data.get("format") if isinstance(data, dict) else None
    if type(found) is not int or found != FORMAT:
        raise ArtifactError(
            f"{path} has format {found!r}; this te_select reads format {FORMAT}: export it again, "
            "or use the version that wrote it"
        )
    try:
        target = _typed(data, "target", dict)
        _typed(target, "name", str)
        _strings(_typed(target, "cpu_features", list), "cpu_features")
        _strings(_typed({"archs": [], **target}, "archs", list), "archs")
        if _typed({"kind": "x86", **target}, "kind", str) not in _KERNELS:
            raise ValueError(f"kind is {target['kind']!r}, expected {' or '.join(_KERNELS)}")
        versions = _typed(data, "versions", dict)
        _strings(versions.values(), "versions")
        kernels = tuple(_parse_kernel(item) for item in _typed(data, "kernels", list))
        sha256 = _typed(data, "sha256", str)
        if not kernels:
            raise ValueError("kernels is empty")
        if len({record.workload.name for record in kernels}) < len(kernels):
            raise ValueError("two kernels have one symbol")
    except (ValueError, TypeError, SelectError) as error:
        raise ArtifactError(f"{path} is not a manifest: {error}; export it again") from error
    return Manifest(kernels, target, versions), sha256


def _parse_kernel(item: Any) -> KernelRecord:
    if not isinstance(item, dict):
        raise TypeError(f"kernel {item!r} is not an object")
    workload = Workload.from_json(_typed(item, "workload", dict))
    symbol = _typed(item, "symbol", str)
    if symbol != workload.name:
        raise ValueError(f"symbol {symbol!r} is not the name of its workload, {workload.name!r}")
    why = _typed({"why": "", **item}, "why", str)  # the first libraries were written without it
    return KernelRecord(workload, _typed(item, "config", dict), _typed(item, "origin", str), why)


def _typed(data: Mapping[str, Any], key: str, kind: type) -> Any:
    value = data.get(key)
    if not isinstance(value, kind):
        raise TypeError(f"{key} is {value!r}, expected a {kind.__name__}")
    return value


def _strings(values: Any, key: str) -> None:
    for value in values:
        if not isinstance(value, str) or not value.isprintable():
            raise TypeError(f"{key} holds {value!r}, expected strings of one line")


def _check_thread_count() -> None:
    """Refuse what the launcher of a library would refuse at every call."""
    text = os.environ.get(_THREADS, "")
    if text and not (text.isascii() and text.isdigit() and text.strip("0")):
        raise ArgumentError(
            f"{_THREADS} is {shown(text)}; expected a positive whole number, or no value for as "
            "many threads as OpenMP allows"
        )


def _open(path: Path) -> tvm_ffi.Module:
    """Load the shared library that lies at ``path`` now.

    The dynamic loader compares paths before files: under a path it has seen, it would hand out the
    old library again. So it is given a link with a new name; one file is still loaded only once.
    """
    folder = path.parent
    try:
        with scratch.folder(room=0) as folder:
            alias = folder / path.name
            alias.symlink_to(path.resolve())
            return tvm_ffi.load_module(alias)
    except SelectError as error:
        raise ArtifactError(f"{path} cannot be loaded: {error}") from error
    except Exception as error:  # tvm_ffi and the loader raise many kinds
        reason = " ".join(str(error).split()).replace(str(folder), str(path.parent))
        advice = (
            "install GCC's OpenMP runtime (Debian: apt install libgomp1)"
            if "libgomp" in reason
            else "export it again for this machine"
        )
        raise ArtifactError(f"{path} cannot be loaded: {reason}; {advice}") from error


def _function(module: tvm_ffi.Module, name: str, path: Path) -> tvm_ffi.Function:
    try:
        return module.get_function(name)
    except Exception as error:  # tvm_ffi raises more than one kind
        raise ArtifactError(f"{path} has no function {name}; export it again") from error
