"""The facts that a build depends on, as a digest; and what was made by the same facts before."""

from __future__ import annotations

import email.parser  # noqa: F401 - versions need it; no fork may meet its import
import functools
import hashlib
import os
import platform
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from te_select.backends.programs import c_compiler
from te_select.base import cache, version
from te_select.errors import ToolchainError
from te_select.runtime.call.cpu import features

_PACKAGES = ("te-select", "apache-tvm", "apache-tvm-ffi")
_SOURCES = (
    "base",
    "operator",
    "schedules",
    "backends",
    "runtime",
    "compiler",
    "records",
    "selecting",
)


def digest(*facts: str | bytes) -> str:
    """A digest of some facts, and of the code, the compilers and the CPU that a build depends on.

    Parameters
    ----------
    facts
        What is asked for besides.

    Returns
    -------
    str
        Hexadecimal digits, for `te_select.base.cache.name_of`.
    """
    found = _of_what_builds(os.environ.get("CC", "").strip(), os.environ.get("PATH", "")).copy()
    for fact in facts:
        _add(found, fact)
    return found.hexdigest()[: cache.DIGITS]


@functools.cache
def _of_what_builds(_wanted_compiler: str, _path: str) -> hashlib._Hash:
    found = hashlib.sha256()
    for fact in (
        *(f"{name} {version.installed(name)}" for name in _PACKAGES),
        _compiler(),
        platform.machine(),
        features.cpu_name(),
        " ".join(sorted(features.features())),
        of_sources(),
    ):
        _add(found, fact)
    return found


@functools.cache
def of_sources() -> str:
    """The SHA-256 of te-select's sources that make a library."""
    found = hashlib.sha256()
    for path in _sources():
        _add(found, path.name)
        _add(found, path.read_bytes())
    return found.hexdigest()


def bytes_of(what: str, facts: Sequence[str | bytes], make: Callable[[], bytes]) -> bytes:
    """Take what was made before from the cache, or make it and keep it.

    Parameters
    ----------
    what
        What it is, as an identifier.
    facts
        What it depends on, besides what every build depends on (`digest`).
    make
        Makes it.

    Returns
    -------
    bytes
        What ``make`` returned, now or before. An entry of the cache that is damaged is made again.
    """
    name = cache.name_of(what, digest(*facts))
    found = cache.read(name) or b""
    size = hashlib.sha256().digest_size
    if hashlib.sha256(found[size:]).digest() == found[:size]:
        return found[size:]
    data = make()
    cache.keep(name, hashlib.sha256(data).digest() + data)
    return data


def _add(found: hashlib._Hash, fact: str | bytes) -> None:
    data = fact if isinstance(fact, bytes) else fact.encode()
    found.update(len(data).to_bytes(8, "little") + data)


def _compiler() -> str:
    try:
        return of_compiler(c_compiler())
    except ToolchainError:
        return "none"


def of_compiler(command: tuple[str, ...]) -> str:
    """A C compiler, by its file: asking it for its version takes as long as a thousand calls."""
    path = Path(str(shutil.which(command[0]))).resolve()
    about = path.stat()
    return f"{shlex.join(command)} {path} {about.st_size} {about.st_mtime_ns}"


def _sources() -> list[Path]:
    root = Path(__file__).parents[1]
    found = (path for name in _SOURCES for path in (root / name).rglob("*"))
    return sorted(path for path in found if path.suffix in {".py", ".c", ".h", ".cuh"})
