"""Manifests as the command line shows them, also those of libraries that cannot run here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from te_select.access import access_pattern
from te_select.broadcast import format_shape
from te_select.errors import ArtifactError
from te_select.workload import Workload


def read_manifest(path: Path) -> dict[str, Any]:
    """Read the manifest beside a library, without loading the library.

    Parameters
    ----------
    path
        The ``.so``.

    Returns
    -------
    dict
        The manifest.

    Raises
    ------
    ArtifactError
        If it is missing or is not a manifest.
    """
    from te_select.runtime.artifact import manifest_path  # noqa: PLC0415 - imports tvm_ffi

    beside = manifest_path(path)
    try:
        manifest = json.loads(beside.read_text())
        for entry in manifest["kernels"]:
            Workload.from_json(entry["workload"])
    except OSError as error:
        raise ArtifactError(
            f"{beside} cannot be read: {error.strerror or error}; it must lie beside {path}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{beside} is not a manifest: {error}; export it again") from error
    return dict(manifest)


def describe(entry: dict[str, Any]) -> dict[str, Any]:
    """What a manifest's entry says about a kernel, and what follows from its workload.

    Parameters
    ----------
    entry
        The entry.

    Returns
    -------
    dict
        JSON types; ``bytes_moved`` is None where a dim is a name.
    """
    workload = Workload.from_json(entry["workload"])
    pattern = access_pattern(workload)
    return {
        "name": workload.name,
        "workload": entry["workload"],
        "shapes": str(workload),
        "out_shape": format_shape(workload.out_shape),
        "access_pattern": str(pattern),
        "bytes_moved": None if workload.dim_names else pattern.bytes_moved(),
        "config": entry["config"],
        "origin": entry["origin"],
    }
