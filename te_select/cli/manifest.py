"""Manifests as the command line shows them, even of libraries that cannot run here."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload
from te_select.runtime.artifact import stored


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
    facts = {"target": manifest["target"]["name"], **manifest["versions"]}
    parts = [
        {
            "type": "library" if part["part"] == "code" else "application",
            "name": part["name"],
            "version": part["version"],
            "scope": "required" if part["part"] == "code" else "excluded",
            **({"licenses": [{"expression": part["license"]}]} if part["license"] else {}),
        }
        for part in manifest.get("components", ())
    ]
    models = [
        {"scope": "excluded", **_file("machine-learning-model", model["name"], model["sha256"])}
        for model in manifest.get("models", ())
    ]
    library = {
        **_file("library", path.name, hashlib.sha256(path.read_bytes()).hexdigest()),
        "properties": [{"name": f"te-select:{key}", "value": said} for key, said in facts.items()],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": library},
        "components": [*parts, *models],
    }


def _file(kind: str, name: str, sha256: str) -> dict[str, Any]:
    return {"type": kind, "name": name, "hashes": [{"alg": "SHA-256", "content": sha256}]}
