"""Names of the family's entries in the cache: everything that a library depends on, as a digest."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
from importlib import metadata
from pathlib import Path

import te_select
from te_select.runtime.cpu import features

WHOLE = "all"
_PREFIX = "where"
_PACKAGES = ("te-select", "apache-tvm", "apache-tvm-ffi")
_COMPILERS = ("cc", "gcc", "clang")
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
        *(f"{name} {_version(name)}" for name in _PACKAGES),
        _compiler(),
        platform.machine(),
        features.cpu_name(),
        " ".join(sorted(features.features())),
    ):
        found.update(fact.encode() + b"\0")
    for path in _sources():
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:24]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "none"


def _compiler() -> str:
    """The C compiler, by its file: asking it for its version takes as long as a thousand calls."""
    wanted = os.environ.get("CC", "").strip()
    names = (wanted.split()[0],) if wanted else _COMPILERS
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        return f"{wanted} none"
    about = Path(path).resolve().stat()
    return f"{wanted} {Path(path).resolve()} {about.st_size} {about.st_mtime_ns}"


def _sources() -> list[Path]:
    root = Path(te_select.__file__).parent
    found = (
        path
        for folder in _FOLDERS
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".c", ".h")
    )
    return sorted(found)
