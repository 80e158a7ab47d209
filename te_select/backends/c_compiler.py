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

from te_select.backends import archive as archives
from te_select.backends.cross_compiler import cross_compiler
from te_select.backends.programs import named_by, run
from te_select.errors import ToolchainError
from te_select.runtime import c
from te_select.runtime.artifact import embedded, scratch
from te_select.runtime.artifact.manifest import Manifest

_COMPILERS = ("cc", "gcc", "clang")
_COMPILE = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden")
_LINK = (
    "-shared",
    "-s",
    "-Wl,--gc-sections",
    "-Wl,--build-id=none",
    "-Wl,-z,noexecstack",
    "-Wl,-z,defs",
)
CHECKS = ("host.c", "plain.c")
"""Sources of every host half: the argument checks, and the plain C functions."""


@dataclass(frozen=True)
class HostHalf:
    """What is linked to the kernels for one kind of machine.

    Parameters
    ----------
    sources
        Files of ``te_select/runtime/c``, beside which lie the headers that the stub includes.
    options
        Of the C compiler, for compiling and for linking.
    host
        A library that must be loaded first, such as ``"libtorch_cpu.so"``, because the sources call
        its functions; it need not be here. Empty if there is none.
    """

    sources: tuple[str, ...]
    options: tuple[str, ...]
    host: str = ""


def link_stub(
    stub: str,
    objects: Sequence[Path],
    half: HostHalf,
    manifest: Manifest,
    out: Path,
    triple: str | None = None,
    archive: Path | None = None,
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
    archive
        A static library of the same to write, of which only the plain C functions can be called;
        None for none.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails; for an archive, if there is no objcopy or ar.
    """
    compiler = compiler_for(triple)
    linked = [*objects, *_runtime_objects(compiler, half)]
    # Whatever is exported can be found, and overwritten, by libtvm's loader; only these may be.
    functions = tuple(manifest.c_functions.values())
    own = (*functions, *archives.SHARED) if functions else ("te_select_pool_v5",)
    with scratch.folder() as folder:
        source, note, exports = (folder / name for name in ("stub.c", "manifest.s", "exports.map"))
        source.write_text(stub)
        note.write_text(embedded.assembly(manifest))
        exports.write_text(f"{{ global: __tvm_ffi_*; {'; '.join(own)}; local: *; }};\n")
        options = (*compiler, *_COMPILE, *_include_options(half))
        inputs = [str(path) for path in (source, note, *linked)]
        if archive is not None:
            merged = folder / "merged.o"
            _run(*options, "-r", "-nostdlib", *inputs, output=merged)
            archives.write(merged, functions, triple, archive)
        library = folder / "library.so"
        _run(
            *options,
            *half.options,
            *inputs,
            *_LINK,
            *_link_to_host(compiler, half, folder),
            "-Xlinker",  # unlike -Wl, it does not end at a comma in the path
            f"--version-script={exports}",
            output=library,
        )
        try:
            out.write_bytes(embedded.seal(library.read_bytes()))
        except OSError as error:
            raise ToolchainError(f"{out} cannot be linked: {error}") from error


def _link_to_host(compiler: tuple[str, ...], half: HostHalf, folder: Path) -> tuple[str, ...]:
    """Options that make a library need its host, in whose place stands an empty library here."""
    if not half.host:
        return ()
    source, empty = folder / "empty.c", folder / half.host
    source.write_text("")
    _run(*compiler, "-shared", "-nostdlib", f"-Wl,-soname,{half.host}", str(source), output=empty)
    return ("-Wl,-z,undefs", "-Wl,--no-as-needed", str(empty))


def compiler_for(triple: str | None) -> tuple[str, ...]:
    """The C compiler for what a triple names: this machine's own, or that of another one."""
    if triple is None or triple.partition("-")[0] == platform.machine():
        return c_compiler()
    return cross_compiler(triple)


def c_compiler() -> tuple[str, ...]:
    """Find the C compiler: ``$CC``, else cc, gcc or clang.

    Returns
    -------
    tuple[str, ...]
        The command, with the options that ``$CC`` may hold.

    Raises
    ------
    ToolchainError
        If there is none.
    """
    if (command := named_by("CC", "a C compiler")) is not None:
        return command
    for name in _COMPILERS:
        if shutil.which(name) is not None:
            return (name,)
    raise ToolchainError(
        f"no C compiler is found ({', '.join(_COMPILERS)}); install one (Debian: apt install gcc) "
        "or set CC"
    )


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
        compile_library(sources, path, *options)
        return ctypes.CDLL(str(path))


_objects_lock = threading.Lock()


def _runtime_objects(compiler: tuple[str, ...], half: HostHalf) -> tuple[Path, ...]:
    """Objects of a host half, compiled once per process and compiler."""
    with _objects_lock:
        return _compile_runtime(compiler, half, os.getpid())


@functools.cache
def _compile_runtime(compiler: tuple[str, ...], half: HostHalf, pid: int) -> tuple[Path, ...]:
    folder = scratch.make()
    atexit.register(scratch.remove, folder)
    objects = []
    for source in half.sources:
        target = folder / f"{Path(source).name}.o"
        options = (*_COMPILE, *half.options, *_include_options(half), "-c", str(c.FOLDER / source))
        _run(*compiler, *options, output=target)
        objects.append(target)
    return tuple(objects)


@functools.cache
def _include_options(half: HostHalf) -> tuple[str, ...]:
    from tvm_ffi import libinfo  # noqa: PLC0415 - as above

    folders = dict.fromkeys((c.FOLDER / source).parent for source in half.sources)
    return tuple(f"-I{path}" for path in (*folders, *libinfo.include_paths()))


def _run(*command: str, output: Path) -> None:
    run(*command, "-o", str(output), advice="set CC to a C compiler that works")
    if not output.is_file():
        raise ToolchainError(f"{command[0]} wrote no file; set CC to a C compiler")
