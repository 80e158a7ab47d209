"""The C compiler: it compiles the host half of a library and links it to the kernels."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import platform
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from te_select.backends import build_key, static_code
from te_select.backends.cross_compiler import cross_compiler
from te_select.backends.programs import c_compiler, first_line, run
from te_select.base import scratch
from te_select.base.levels import machine_of
from te_select.base.variables import check_building
from te_select.errors import ToolchainError, caught
from te_select.runtime import c
from te_select.runtime.artifact import embedded
from te_select.runtime.artifact.manifest import Manifest
from te_select.runtime.artifact.stored import OBJECT

_COMPILE = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden")
_LINK = (
    "-shared",
    "-s",
    "-Wl,--gc-sections",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
    "-Wl,-z,defs",
)
# Sources of every host half: the argument checks, and the plain C functions.
CHECKS = ("host.c", "plain.c")


@dataclass(frozen=True)
class HostHalf:
    """What is linked to the kernels for one kind of machine.

    Parameters
    ----------
    sources
        Files of ``te_select/runtime/c``, beside which lie the headers that the stub includes.
    options
        Of the C compiler, for compiling and for linking.
    in_model
        What an object file for TVM has beside it.
    exports
        Functions of the shared library beside those of tvm-ffi and of the kernels.
    """

    sources: tuple[str, ...]
    options: tuple[str, ...]
    in_model: HostHalf | None = None
    exports: tuple[str, ...] = ()


def link_stub(
    stub: str,
    objects: Sequence[Path],
    half: HostHalf,
    manifest: Manifest,
    out: Path,
    triple: str | None = None,
    static: Path | None = None,
) -> None:
    """Link the description of kernels, objects and a host half to a shared library.

    Parameters
    ----------
    stub
        C source that defines the exported functions.
    objects
        What else it needs.
    half
        The host half.
    manifest
        What the library holds, which goes into it.
    out
        The library to write, in a folder of the caller's own. The same input gives the same bytes.
    triple
        What it is for, such as ``"aarch64-linux-gnu"``; None for this machine.
    static
        A ``.a`` to write with the same code, of which only the functions of the header can be
        called, or a ``.o`` with the functions of tvm-ffi in place of the kernels' plain ones; None
        for neither.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails; for static code, if there is no objcopy or ar.
    """
    compiler = compiler_for(triple)
    linked = [*objects, *_runtime_objects(compiler, half)]
    # Whatever is exported can be found, and overwritten, by libtvm's loader; only these may be.
    functions = tuple(manifest.c_functions.values())
    own = (*functions, *static_code.SHARED) if functions else (static_code.POOL,)
    with scratch.folder() as folder:
        source, note, exports = (folder / name for name in ("stub.c", "manifest.s", "exports.map"))
        source.write_text(stub)
        note.write_text(embedded.assembly(manifest))
        shown = "; ".join((*own, *half.exports))
        exports.write_text(f"{{ global: __tvm_ffi_*; {shown}; local: *; }};\n")
        options = (*compiler, *_COMPILE, *_include_options(half))
        inputs = [str(path) for path in (source, note, *linked)]
        if static is not None:
            merged = folder / "merged.o"
            added = half.in_model if static.suffix == OBJECT else None
            more = [str(path) for path in _runtime_objects(compiler, added)] if added else []
            _run(*options, "-r", "-nostdlib", *inputs, *more, output=merged)
            declared = [name for name in half.exports if name in static_code.ANY_SHAPES]
            static_code.write(merged, manifest, triple, static, declared)
        library = folder / "library.so"
        _run(
            *options,
            *half.options,
            *inputs,
            *_LINK,
            "-Xlinker",  # unlike -Wl, it does not end at a comma in the path
            f"--version-script={exports}",
            output=library,
        )
        try:
            out.write_bytes(embedded.seal(library.read_bytes()))
        except caught(OSError) as error:
            raise ToolchainError(f"{out} cannot be linked: {error}") from error


def compiler_for(triple: str | None) -> tuple[str, ...]:
    """The C compiler for what a triple names: this machine's own, or that of another one."""
    if triple is None or machine_of(triple) == platform.machine():
        return c_compiler()
    return cross_compiler(triple)


def compile_library(sources: Sequence[Path], output: Path, *options: str) -> None:
    """Compile C files for this machine to a shared library at ``output``.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    shared = ("-std=gnu11", "-fPIC", "-shared")
    _run(*c_compiler(), *shared, *map(str, sources), *options, output=output)


def open_library(sources: Sequence[Path], *options: str) -> ctypes.CDLL:
    """Compile C files as `compile_library` does, and open the library; its file is gone again."""
    with scratch.folder() as folder:
        path = folder / "library.so"
        facts: list[str | bytes] = [source.read_bytes() for source in sources]

        def make() -> bytes:
            compile_library(sources, path, *options)
            return path.read_bytes()

        path.write_bytes(build_key.bytes_of(sources[0].stem, [*facts, *options], make))
        try:
            return ctypes.CDLL(str(path))
        except caught(OSError) as error:
            advice = "expected TMPDIR to be a folder from which programs may be run"
            raise ToolchainError(f"compiled C cannot be loaded: {error}; {advice}") from error


_objects_lock = threading.Lock()


def _runtime_objects(compiler: tuple[str, ...], half: HostHalf) -> tuple[Path, ...]:
    """Objects of a host half, unpacked once per process and compiler."""
    with _objects_lock:
        return _unpacked(compiler, half, os.getpid())


@functools.cache
def _unpacked(compiler: tuple[str, ...], half: HostHalf, pid: int) -> tuple[Path, ...]:
    folder = scratch.make()
    atexit.register(scratch.remove, folder)
    archive = folder / "half.zip"

    def make() -> bytes:
        for source, path in objects.items():
            options = (*_COMPILE, *half.options, *_include_options(half), "-c")
            _run(*compiler, *options, str(c.FOLDER / source), output=path)
        shutil.make_archive(str(archive.with_suffix("")), "zip", folder / "objects")
        return archive.read_bytes()

    objects = {source: folder / "objects" / f"{Path(source).name}.o" for source in half.sources}
    (folder / "objects").mkdir()
    version = first_line(*compiler, "--version") or ""
    facts = (build_key.of_compiler(compiler), version, *half.sources, *half.options)
    archive.write_bytes(build_key.bytes_of("host_half", facts, make))
    shutil.unpack_archive(archive, folder / "objects")
    return tuple(objects.values())


@functools.cache
def _include_options(half: HostHalf) -> tuple[str, ...]:
    from tvm_ffi import libinfo  # noqa: PLC0415 - as above

    folders = dict.fromkeys((c.FOLDER / source).parent for source in half.sources)
    found = (c.FOLDER, *folders, *libinfo.include_paths())
    return tuple(f"-I{path}" for path in found)


def _run(*command: str, output: Path) -> None:
    check_building(f"{output.name} by {command[0]}")
    run(*command, "-o", str(output), advice="set CC to a C compiler that works")
    if not output.is_file():
        raise ToolchainError(f"{command[0]} wrote no file; set CC to a C compiler")
