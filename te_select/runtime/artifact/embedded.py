"""The manifest inside a shared library: a read-only ELF note, sealed by a digest of the whole file.

The note's owner is ``te-select``, its type 1. Its text is the manifest as JSON. The first field is
the SHA-256 of the library. To compute it, the digest's own 64 characters count as zeros. So one
file holds code and manifest, and a change to either is noticed.
"""

import hashlib
import json
import re
import struct

from te_select.errors import ArtifactError
from te_select.runtime.artifact.manifest import Manifest, parse

OWNER = b"te-select\0"
NOTE_TYPE = 1
_UNSEALED = "0" * 64
_DIGEST_AT = len('{"sha256": "')
_NOTE = re.compile(  # sizes of owner and text, type, and owner, padded to four bytes
    struct.pack("<I", len(OWNER)) + rb"(.{4})" + struct.pack("<I", NOTE_TYPE) + OWNER + rb"\0\0",
    re.DOTALL,
)
_IDENTITY = b"\x7fELF\x02\x01"  # 64 bits, little-endian


def assembly(manifest: Manifest) -> str:
    """Assembly of the note that holds a manifest, and of a symbol for where its text begins."""
    text = _unsealed(manifest)
    padded = text + b" " * (-len(text) % 4)
    return f"""\
.section .note.te_select,"a",%note
.balign 4
.long {len(OWNER)}
.long {len(padded)}
.long {NOTE_TYPE}
.byte {",".join(map(str, OWNER))}
.balign 4
.globl te_select_manifest_text
.hidden te_select_manifest_text
te_select_manifest_text:
.byte {",".join(map(str, padded))}
.section .note.GNU-stack,"",%progbits
"""


def seal(image: bytes) -> bytes:
    """Put the digest into the manifest of a library that has just been linked.

    Raises
    ------
    ArtifactError
        If it holds no manifest.
    """
    return _with_digest(image, _place(image, "the linked library")[0])[0]


def replace(image: bytes, manifest: Manifest) -> tuple[bytes, str]:
    """The same code with another manifest, which must not be longer than the old one; its digest.

    Raises
    ------
    ArtifactError
        If it is longer, or the library holds no manifest.
    """
    start, size = _place(image, "the library")
    text = _unsealed(manifest)
    if len(text) > size:
        raise ArtifactError("the library has no room for this manifest; export it again")
    return _with_digest(image[:start] + text.ljust(size) + image[start + size :], start)


def read(image: bytes, place: str, *, check: bool = True) -> tuple[Manifest, str]:
    """Read a library's manifest, and check that the library has not changed since it was sealed.

    Parameters
    ----------
    image
        The bytes of the file.
    place
        The file, for messages.
    check
        Whether to check it.

    Returns
    -------
    tuple
        The manifest and its digest.

    Raises
    ------
    ArtifactError
        If the library or its manifest was changed or cut, or it holds no manifest.
    """
    start, size = _place(image, place)
    digest = image[start + _DIGEST_AT : start + _DIGEST_AT + len(_UNSEALED)]
    if check and digest == _UNSEALED.encode():
        raise ArtifactError(
            f"{place} has kernels that were linked into it as an object, as into a model of TVM: "
            "call it as what it is; expected a library as te_select.export makes it"
        )
    if check and digest != _digest(image, start).encode():
        raise ArtifactError(
            f"{place} is not the library that was exported (the SHA-256 differs): it was changed "
            "or cut; export it again"
        )
    return parse(image[start : start + size], f"the manifest in {place}")


def _unsealed(manifest: Manifest) -> bytes:
    """The text before the digest is known; one space is in it, before the digest."""
    text = json.dumps(manifest.to_json(_UNSEALED, short=True), separators=(",", ":"))
    return text.replace(":", ": ", 1).encode()


def _with_digest(image: bytes, start: int) -> tuple[bytes, str]:
    at, digest = start + _DIGEST_AT, _digest(image, start)
    return image[:at] + digest.encode() + image[at + len(_UNSEALED) :], digest


def _digest(image: bytes, start: int) -> str:
    at = start + _DIGEST_AT
    whole = hashlib.sha256(memoryview(image)[:at])
    whole.update(_UNSEALED.encode())
    whole.update(memoryview(image)[at + len(_UNSEALED) :])
    return whole.hexdigest()


def _place(image: bytes, place: str) -> tuple[int, int]:
    """Where the text of the manifest begins, and how many bytes it has."""
    reason = "is no ELF file of 64 bits, as shared libraries are"
    if image.startswith(_IDENTITY):
        found = _NOTE.search(image)
        size = int.from_bytes(found[1], "little") if found else 0
        if found and _DIGEST_AT + len(_UNSEALED) <= size <= len(image) - found.end():
            return found.end(), size
        reason = "holds no manifest: it was cut, or not made by te-select 0.2 or later"
    raise ArtifactError(f"{place} {reason}; expected a library as te_select.export makes it")
