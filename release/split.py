"""Divides an unpacked sdist of te-select into the two distributions that are released.

``te-select-runtime`` loads, calls, verifies and inspects libraries, and needs NumPy and tvm-ffi
alone. ``te-select`` has the packages that build and tune them, and asks for the runtime of its own
version. They share no file: one can be removed without harm to the files of the other.

Run ``python release/split.py SDIST RUNTIME BUILDER``: a folder to read, and two to write.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

import tomlkit
from packaging.requirements import Requirement

RUNTIME, PACKAGE = "te-select-runtime", "te_select"
NEEDED = {"numpy"}  # to load and call a library, besides tvm-ffi
# Other packages pin it otherwise. Only the builder, for its MetaSchedule, needs one release.
TVM_FFI = "apache-tvm-ffi>=0.1.9,<0.2"
SHELL = {"ml_dtypes", "rich", "typer"}  # to verify and inspect one from a shell
BUILDING = (
    "bench",
    "compiler",
    "dlight",
    "frontends",
    "relax",
    "schedules",
    "timing",
    "tuning",
    "tuning_logs",
)
FROM_THE_CACHE = ("__init__.py", "compile.py")  # of the compiler: they need none of what builds
VERSION = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)


def main() -> None:
    """Write the two projects."""
    source, runtime, builder = map(Path, sys.argv[1:])
    shutil.copytree(source, runtime)
    for name in BUILDING:
        shutil.rmtree(runtime / PACKAGE / name)
    (runtime / PACKAGE / "compiler").mkdir()
    for name in FROM_THE_CACHE:
        shutil.copy2(source / PACKAGE / "compiler" / name, runtime / PACKAGE / "compiler")
    _edit(runtime, _to_runtime)

    builder.mkdir()
    for name in ("LICENSE", "NOTICE", "README.md", "pyproject.toml"):
        shutil.copy2(source / name, builder)
    for name in BUILDING:
        shutil.copytree(source / PACKAGE / name, builder / PACKAGE / name)
    for name in FROM_THE_CACHE:
        (builder / PACKAGE / "compiler" / name).unlink()
    found = VERSION.search((source / PACKAGE / "base" / "version.py").read_text("utf-8"))
    assert found is not None
    _edit(builder, lambda document: _to_builder(document, found[1]))


def _to_runtime(document: Any) -> None:
    project = document["project"]
    project["name"] = RUNTIME
    project["description"] = "Loads and runs the libraries of te-select; no TVM, no compiler"
    wanted = list(project["dependencies"])
    project["dependencies"] = [TVM_FFI, *_of(wanted, NEEDED)]
    project["optional-dependencies"] = {"cli": _of(wanted, SHELL)}
    data = document["tool"]["setuptools"]["package-data"]
    data[PACKAGE] = [name for name in data[PACKAGE] if not name.startswith(BUILDING)]


def _to_builder(document: Any, version: str) -> None:
    project = document["project"]
    del project["dynamic"], project["scripts"]
    project["version"] = version
    project["dependencies"] = [f"{RUNTIME}=={version}", *project["dependencies"]]
    document["build-system"]["requires"] = _of(document["build-system"]["requires"], {"setuptools"})
    document["tool"]["setuptools"] = {
        "packages": {"find": {"include": [f"{PACKAGE}.*"], "namespaces": True}},
        "package-data": {"*": ["*.c", "*.cuh", "*.json", "*.md", "*.txt"]},
    }


def _of(requirements: list[str], names: set[str]) -> list[str]:
    """The requirements of these names; each name must be there."""
    found = [text for text in requirements if Requirement(text).name in names]
    assert {Requirement(text).name for text in found} == names, (found, names)
    return found


def _edit(project: Path, change: Any) -> None:
    path = project / "pyproject.toml"
    document = tomlkit.parse(path.read_text("utf-8"))
    change(document)
    path.write_text(tomlkit.dumps(document), "utf-8")


if __name__ == "__main__":
    main()
