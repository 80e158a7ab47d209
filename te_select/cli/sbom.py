"""What a library is made of and by, as a software bill of materials."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any


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
