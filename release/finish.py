"""Finishes wheels: puts a bill of materials into each, and gives it the tag that auditwheel finds.

Run ``python release/finish.py WHEEL ...``. PEP 770 says where the bill lies: in ``sboms`` of the
wheel's ``.dist-info``.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from te_select.cli.manifest import bill, cyclonedx, read_manifest

KERNELS = "libte_select_where.so"
TAG = re.compile(r'platform tag:\s*"(manylinux_[^"]*)"')


def main() -> None:
    """Finish the wheels."""
    for wheel in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            python("wheel", "unpack", "--dest", folder, str(wheel))
            (root,) = Path(folder).iterdir()
            (info,) = root.glob("*.dist-info")
            document = contents(PathDistribution(info), root, info / "WHEEL")
            place = info / "sboms" / f"{root.name}.cdx.json"
            place.parent.mkdir(exist_ok=True)
            place.write_text(json.dumps(document, indent=1) + "\n", "utf-8")
            python("wheel", "pack", "--dest-dir", str(wheel.parent), str(root))
        if "linux_" in wheel.name:
            said = python("auditwheel", "show", str(wheel), check=False)
            if tag := TAG.search(said):
                python("wheel", "tags", "--remove", "--platform-tag", tag[1], str(wheel))
            else:
                print(f"{wheel} gets no manylinux tag: {' '.join(said.split())}")


def contents(of: PathDistribution, root: Path, wheel: Path) -> dict[str, Any]:
    """The bill of a distribution: its machine code, and the packages that it needs."""
    purl = f"pkg:pypi/{of.name}@{of.version}"
    subject = {"type": "library", "name": of.name, "version": of.version, "purl": purl}
    licences = [{"expression": of.metadata["License-Expression"]}]
    parts = [library(path, root) for path in sorted(root.rglob("*.so"))]
    needed = [Requirement(text) for text in of.requires or ()]
    parts += [package(need) for need in needed if "extra" not in str(need.marker)]
    return bill({**subject, "bom-ref": purl, "licenses": licences}, parts, wheel)


def library(path: Path, root: Path) -> dict[str, Any]:
    """A file with machine code; of the kernels, what they are made of and by, too."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    found: dict[str, Any] = {"type": "library", "hashes": [{"alg": "SHA-256", "content": digest}]}
    if path.name == KERNELS:
        document = cyclonedx(path, read_manifest(path))
        found = {**document["metadata"]["component"], "components": document["components"]}
    place = path.relative_to(root).as_posix()
    return {**found, "name": place, "bom-ref": place}


def package(need: Requirement) -> dict[str, Any]:
    """A package that is needed, with its version where one alone is taken, else with the range."""
    found = {"type": "library", "name": need.name, "bom-ref": need.name}
    purl = f"pkg:pypi/{canonicalize_name(need.name)}"
    for each in need.specifier:
        if each.operator == "==":
            return {**found, "version": each.version, "purl": f"{purl}@{each.version}"}
    versions = {"name": "te-select:versions", "value": str(need.specifier) or "any"}
    return {**found, "purl": purl, "properties": [versions]}


def python(module: str, *words: str, check: bool = True) -> str:
    """What a module prints that is run by this Python; its errors if that is nothing."""
    command = [sys.executable, "-m", module, *words]
    done = subprocess.run(command, check=check, capture_output=True, text=True)
    return done.stdout or done.stderr


if __name__ == "__main__":
    main()
