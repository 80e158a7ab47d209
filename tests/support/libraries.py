"""Makes libraries of the first format, and edited ones."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from te_select.runtime import embedded, stored
from te_select.runtime.manifest import FIRST_FORMAT, Manifest


def make_first_format(path: Path) -> Path:
    """Turn a library into one of the first format: its manifest is only in the file beside it."""
    manifest = stored.read(path).manifest
    image = path.read_bytes().replace(embedded.OWNER, b"te-first\0\0")
    path.write_bytes(image)
    text = first_format_text(manifest, image)
    path.with_suffix(".json").write_text(text)
    return path


def first_format_text(manifest: Manifest, image: bytes) -> str:
    """The file beside a library of the first format."""
    return json.dumps(
        manifest.to_json(hashlib.sha256(image).hexdigest()) | {"format": FIRST_FORMAT}, indent=1
    )


def edit_beside(path: Path, **fields: Any) -> None:
    """Change fields of the file beside a library."""
    beside = path.with_suffix(".json")
    beside.write_text(json.dumps(json.loads(beside.read_text()) | fields))


def edit_inside(path: Path, before: str, after: str, *, seal: bool = True) -> None:
    """Change a text of the manifest in a library, and seal it again or not."""
    old, new = before.encode(), after.encode()
    assert len(new) <= len(old), "the manifest may not grow"
    image = path.read_bytes()
    assert old in image
    # Spaces after the text keep its length.
    start = image.index(b'{"sha256": "')
    end = image.index(b"}}", image.rindex(b'"versions"')) + 2
    text = image[start:end].replace(old, new, 1).ljust(end - start)
    image = image[:start] + text + image[end:]
    path.write_bytes(embedded.seal(image) if seal else image)
