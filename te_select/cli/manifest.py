"""Manifests as the command line shows them, even of libraries that cannot run here."""

import hashlib
import json
import os
import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from te_select.base.version import __version__
from te_select.errors import ArgumentError
from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.artifact import stored

_ON_PYPI = {"te-select", "Apache TVM", "Apache TVM FFI"}
_INSIDE = {"type": "library", "scope": "required"}
_MAKER = {"type": "application", "scope": "excluded"}


def read_manifest(path: Path, *, check: bool = True) -> dict[str, Any]:
    """Read the manifest of a library, without loading the library.

    Parameters
    ----------
    path
        The ``.so``.
    check
        Whether to refuse a library that has changed since its export.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    ArtifactError
        If the library is missing or damaged.
    """
    found = stored.read(path, check=check)
    return found.manifest.to_json(found.sha256)


def describe(entry: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    """Describe a kernel: its manifest entry, and what follows from its workload.

    Parameters
    ----------
    entry
        The entry.
    target
        The manifest's target.

    Returns
    -------
    dict
        JSON types, under the names that the manifest uses; ``bytes_moved`` is None if a dim is a
        name. Where the library has several levels, ``levels`` has all of them.
    """
    workload = Workload.from_json(entry["workload"])
    pattern = access_pattern(workload)
    choice = {key: entry[key] for key in ("config", "origin", "why")}
    best = list(target.get("levels", ()))[-1:]
    levels = {**entry.get("levels", {}), **dict.fromkeys(best, choice)}
    return {
        "symbol": entry["symbol"],
        **({"c_function": entry["c_function"]} if "c_function" in entry else {}),
        "workload": entry["workload"],
        "shapes": str(workload),
        "out_shape": list(workload.out_shape),
        "access_pattern": str(pattern),
        "bytes_moved": None if workload.dim_names else pattern.bytes_moved(),
        **choice,
        **({"levels": levels} if levels else {}),
    }


def for_people(kernels: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What people read of what `describe` found; those of the family of where() are one line."""
    members = family.members(Workload.from_json(kernel["workload"]) for kernel in kernels)
    own = [
        {name: value for name, value in kernel.items() if name != "workload"}
        for kernel in kernels
        if Workload.from_json(kernel["workload"]) not in members
    ]
    served = {"symbol": family.FUNCTION, "shapes": "any", "kernels": len(kernels) - len(own)}
    return [*own, served] if members else own


def cyclonedx(path: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write what the manifest of a library says as a document of CycloneDX 1.6.

    Parameters
    ----------
    path
        The library.
    manifest
        Its manifest.

    Returns
    -------
    dict
        JSON types. What has only made the library, compilers and models, has the scope
        ``excluded``.
    """
    versions = manifest["versions"]
    facts = {"target": manifest["target"]["name"], **versions}
    parts = [
        {
            **_package(part["name"], part["version"]),
            **(_INSIDE if part["part"] == "code" else _MAKER),
            **({"licenses": [{"expression": part["license"]}]} if part["license"] else {}),
        }
        for part in manifest.get("components", ())
    ]
    sources = versions.get("te_select_sources", "")
    for part in parts:
        if part["name"] == "te-select" and sources:
            part["hashes"] = _sha256(sources)
    models = [
        {"scope": "excluded", **_file("machine-learning-model", model["name"], model["sha256"])}
        for model in manifest.get("models", ())
    ]
    library = {
        **_file("library", path.name, hashlib.sha256(path.read_bytes()).hexdigest()),
        "properties": [{"name": f"te-select:{key}", "value": said} for key, said in facts.items()],
    }
    return bill(library, [*parts, *models], path)


def bill(subject: dict[str, Any], parts: list[dict[str, Any]], path: Path) -> dict[str, Any]:
    """Write a document of CycloneDX 1.6, the same at every time.

    Parameters
    ----------
    subject
        What it is about, as a component.
    parts
        The components.
    path
        The file that it is about. The time in the document is ``SOURCE_DATE_EPOCH``, else when
        this file was written.
    """
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    if told and not (told.isascii() and told.isdigit()):
        raise ArgumentError(f"SOURCE_DATE_EPOCH is {told!r}; expected a whole number of seconds")
    moment = datetime.fromtimestamp(int(told or path.stat().st_mtime), timezone.utc)
    content = json.dumps([subject, parts])
    author = {"type": "application", **_package("te-select", __version__)}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "version": 1,
        "metadata": {
            "timestamp": moment.isoformat(),
            "tools": {"components": [{**author, "bom-ref": "tool"}]},
            "component": subject,
        },
        "components": parts,
        "dependencies": [
            {"ref": subject["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}
        ],
    }


def _package(name: str, version: str) -> dict[str, Any]:
    """Name, version and address of a package, on Python's index if it is there."""
    index = "pypi" if name in _ON_PYPI else "generic"
    purl = f"pkg:{index}/{name.lower().replace(' ', '-')}@{version}"
    return {"name": name, "version": version, "purl": purl, "bom-ref": purl}


def _file(kind: str, name: str, sha256: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "bom-ref": f"{name}#{sha256}", "hashes": _sha256(sha256)}


def _sha256(content: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": content}]
