"""Manifests as the command line shows them, even of libraries that cannot run here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from te_select.cli.console import print_fields
from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.operator.broadcast import count_of, format_shape
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


def print_kernels(kernels: Sequence[dict[str, Any]]) -> None:
    """Print what `describe` found of each kernel; those of the family of where() in one line."""
    own, of_family = apart(kernels)
    for kernel in own:
        print_kernel(kernel)
    if of_family:
        print(f"{family.FUNCTION}: serves operands of any shapes by {len(of_family)} kernels")


def apart(
    kernels: Sequence[dict[str, Any]],
) -> tuple[Sequence[dict[str, Any]], Sequence[dict[str, Any]]]:
    """The kernels of workloads, and those that together serve operands of any shapes."""
    workloads = {kernel["symbol"]: Workload.from_json(kernel["workload"]) for kernel in kernels}
    members = family.members(workloads.values())
    own = [kernel for kernel in kernels if workloads[kernel["symbol"]] not in members]
    return own, [kernel for kernel in kernels if workloads[kernel["symbol"]] in members]


def print_kernel(described: dict[str, Any]) -> None:
    """Print what `describe` found, for people."""
    print(described["symbol"])
    shown = {
        name.replace("_", " "): value
        for name, value in described.items()
        if name not in ("symbol", "workload", "source", "levels", "here")
    }
    if "levels" in described:  # the config of the best one stands above
        *lower, best = described["levels"]
        shown["level"] = best
        for name in reversed(lower):
            choice = described["levels"][name]
            shown[f"level {name}"] = f"{choice['origin']}: {choice['config']}"
    shown["out shape"] = format_shape(described["out_shape"])
    if described["bytes_moved"] is None:
        shown["bytes moved"] = "known at call time"
    if "here" in described:
        shown["here"] = _in_words(described["here"])
    print_fields(shown, "  ")


def _in_words(here: dict[str, Any]) -> str:
    """How a call runs on this machine, as docs/schedules.md calls it."""
    said = []
    if "threads" in here:
        said.append(count_of(here["threads"], "thread"))
        said.append(f"stores {'past' if here['stores_past_the_cache'] else 'into'} the caches")
        said += ["may look at cond first"] * here["looks_at_cond"]
    return "; ".join([*said, *([" or ".join(here["leaf"])] if here["leaf"] else [])])


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
        {
            "type": "machine-learning-model",
            "name": model["name"],
            "scope": "excluded",
            "hashes": [{"alg": "SHA-256", "content": model["sha256"]}],
        }
        for model in manifest.get("models", ())
    ]
    library = {
        "type": "library",
        "name": path.name,
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(path.read_bytes()).hexdigest()}],
        "properties": [{"name": f"te-select:{key}", "value": said} for key, said in facts.items()],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": library},
        "components": [*parts, *models],
    }
