"""Artifacts: a shared library ``NAME.so`` and, beside it, its manifest ``NAME.json``."""

from __future__ import annotations

import difflib
import functools
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import tvm_ffi

from te_select import kinds
from te_select.errors import ArtifactError, SelectError
from te_select.runtime import files, scratch
from te_select.runtime.kernel import Kernel
from te_select.runtime.manifest import Manifest, manifest_path, read_manifest

_NAMES_SHOWN = 3  # of a library's kernels, where one is asked for that it lacks


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
    text = manifest.to_text(hashlib.sha256(files.read(path)).hexdigest())
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
    make: type[Kernel] = kinds.load(manifest.kind.kernel)
    if missing := make.missing(manifest.target):
        raise ArtifactError(
            f"{path} was compiled for {manifest.target['name']} and this CPU lacks "
            f"{', '.join(missing)}; compile it for a target that this CPU can run"
        )
    module = _open(path)
    make.prepare(lambda name: _function(module, name, path))
    kernels: dict[str, Kernel] = {}
    for record in manifest.kernels:
        name = record.workload.name
        alone = Manifest((record,), manifest.target, manifest.versions)
        kernels[name] = make(
            record,
            alone,
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
    text = manifest.to_text(hashlib.sha256(image).hexdigest())
    files.replace_all({path: image, manifest_path(path): text})
    return path


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
