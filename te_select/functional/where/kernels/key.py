"""Names of the family's entries in the cache: everything that a library depends on, as a digest."""

from __future__ import annotations

import functools
import hashlib
import platform
import shlex
import shutil
from pathlib import Path

import te_select
from te_select.errors import ToolchainError
from te_select.machines.c_compiler import c_compiler
from te_select.runtime import packages
from te_select.runtime.cpu import features

WHOLE = "all"
_PREFIX = "where"
_PACKAGES = ("te-select", "apache-tvm", "apache-tvm-ffi")
_FOLDERS = ("operator", "schedules", "machines", "runtime", "compiler", "functional/where")


def entry(part: str) -> str:
    """The file name of a part that is built here, for this CPU."""
    return f"{_PREFIX}-{part}-{_digest()}.so"


def holds(name: str, part: str) -> bool:
    """Whether an entry of whatever digest holds a part."""
    return name.startswith((f"{_PREFIX}-{part}-", f"{_PREFIX}-{WHOLE}-"))


@functools.cache
def _digest() -> str:
    found = hashlib.sha256()
    for fact in (
        *(f"{name} {packages.version(name)}" for name in _PACKAGES),
        _compiler(),
        platform.machine(),
        features.cpu_name(),
        " ".join(sorted(features.features())),
    ):
        found.update(fact.encode() + b"\0")
    for path in _sources():
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:24]


def _compiler() -> str:
    """The C compiler, by its file: asking it for its version takes as long as a thousand calls."""
    try:
        command = c_compiler()
    except ToolchainError:
        return "none"
    path = Path(str(shutil.which(command[0]))).resolve()
    about = path.stat()
    return f"{shlex.join(command)} {path} {about.st_size} {about.st_mtime_ns}"


def _sources() -> list[Path]:
    root = Path(te_select.__file__).parent
    found = (
        path
        for folder in _FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".c", ".h")
    )
    return sorted(found)
