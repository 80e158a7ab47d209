"""Compiles the C half of a library under sanitizers, with a program that calls it, and runs it."""

import os
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tvm_ffi import libinfo

from soak.found import Found
from te_select.backends.cpu import link
from te_select.backends.programs import c_compiler
from te_select.runtime import c
from te_select.runtime.artifact import embedded
from te_select.runtime.artifact.fields import Choice
from te_select.runtime.artifact.manifest import KernelRecord, Manifest, c_name

_RUNTIME = c.FOLDER
SOURCES = tuple(_RUNTIME / name for name in link.CPU.sources)
"""The files that are linked to the kernels of every library."""
_OPTIONS = ("-std=gnu11", "-fno-sanitize-recover=all", "-g", "-O1")
_SECONDS = 200.0  # limit of one run
_TOLD = 6  # lines of a sanitizer's report that are shown
_MARKS = ("call ", "runtime error", "ERROR: ", "WARNING: ", "FATAL: ", "in call ", "#0", "#1")


def compile_driver(
    main: Path,
    entries: Sequence[link.KernelEntry],
    folder: Path,
    *options: str,
    sources: Sequence[Path] = SOURCES,
) -> Path:
    """Compile a program from the files that `link` would link to the kernels of a library.

    Parameters
    ----------
    main
        The C file of the program; it defines the kernels, too.
    entries
        The kernels.
    folder
        The folder to build in; headers in it are found.
    options
        Options of the compiler, such as ``-fsanitize=thread``.
    sources
        The C half.

    Returns
    -------
    Path
        The program.
    """
    manifest = Manifest(
        tuple(KernelRecord(entry.workload, Choice({}, "default", "")) for entry in entries),
        {"name": "x86-64", "kind": "cpu", "cpu_features": []},
        {},
    )
    stub, note, program = (folder / name for name in ("stub.c", "manifest.s", "driver"))
    plain = {entry.workload: c_name(entry.workload) for entry in entries}
    stub.write_text(link.stub_source(entries, [link.Level("x86-64", ())], plain))
    note.write_text(embedded.assembly(manifest))
    includes = (folder, main.parent, *{path.parent for path in SOURCES}, *libinfo.include_paths())
    libtvm_ffi = Path(libinfo.find_libtvm_ffi()).parent
    subprocess.run(
        (
            *(*c_compiler(), *_OPTIONS, *options, *link.CPU.options),
            *(f"-I{path}" for path in includes),
            *map(str, (main, stub, note, *sources)),
            *(f"-L{libtvm_ffi}", "-ltvm_ffi", "-Xlinker", f"-rpath={libtvm_ffi}"),
            *("-o", str(program)),
        ),
        check=True,
    )
    return program


def run(command: Sequence[str], found: Found, environment: Mapping[str, str]) -> list[int] | None:
    """Run a program: the numbers that it prints, or None after a failure, which is added."""
    found.doing(shlex.join(command))
    try:
        done = subprocess.run(
            command,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        found.failed(f"the driver had not ended after {_SECONDS:.0f} s")
        return None
    if done.returncode == 0:
        return [int(number) for number in done.stdout.split()]
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines()]
    said = [line for line in lines if any(mark in line for mark in _MARKS)]
    found.failed("; ".join(said[:_TOLD]) or f"the driver ended with code {done.returncode}")
    return None
