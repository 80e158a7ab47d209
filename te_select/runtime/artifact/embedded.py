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


def assembly(manifest: Manifest) -> str:
    """Assembly of the note that holds a manifest, and of a symbol for where its text begins."""
    text = _unsealed(manifest)
    text += b" " * (-len(text) % 4)
    return f"""\
.section .note.te_select,"a",%note
.balign 4
.byte {",".join(map(str, _head(struct.pack("<I", len(text)))))}
.globl te_select_manifest_text
.hidden te_select_manifest_text
te_select_manifest_text:
.byte {",".join(map(str, text))}
.section .note.GNU-stack,"",%progbits
"""


def seal(image: bytes) -> bytes:
    """Put the digest into the manifest of a library that has just been linked.

    Raises
    ------
    ArtifactError
        If it holds no manifest.
    """
    at = _place(image, "the linked library")[0] + _DIGEST_AT
    return image[:at] + _digest(image, at).encode() + image[at + len(_UNSEALED) :]


def replace(image: bytes, manifest: Manifest) -> bytes:
    """The same code with another manifest, which must not be longer than the old one.

    Raises
    ------
    ArtifactError
        If it is longer, or the library holds no manifest.
    """
    start, size = _place(image, "the library")
    text = _unsealed(manifest)
    if len(text) > size:
        raise ArtifactError("the library has no room for this manifest; export it again")
    return seal(image[:start] + text.ljust(size) + image[start + size :])


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
    at = start + _DIGEST_AT
    digest = image[at : at + len(_UNSEALED)]
    if check and digest == _UNSEALED.encode():
        raise ArtifactError(
            f"{place} has kernels that were linked into it as an object, as into a model of TVM: "
            "call it as what it is; expected a library as te_select.export makes it"
        )
    if check and digest != _digest(image, at).encode():
        raise ArtifactError(
            f"{place} is not the library that was exported (the SHA-256 differs): it was changed "
            "or cut; export it again"
        )
    return parse(image[start : start + size], f"the manifest in {place}")


def unsealed(image: bytes, seal: bytes) -> bytes:
    """A library as it was: its machine code, and the rest of its seal, release/runtime_wheel.py."""
    begin, end = struct.unpack_from("<QQ", seal)
    rest = seal[16:]
    return rest[:begin] + image[begin:end] + rest[begin:]


def _unsealed(manifest: Manifest) -> bytes:
    """The text before the digest is known; one space is in it, before the digest."""
    text = json.dumps(manifest.to_json(_UNSEALED, short=True), separators=(",", ":"))
    return text.replace(":", ": ", 1).encode()


def _head(size: bytes) -> bytes:
    """What a note begins with: sizes of owner and text, type, and owner, padded to four bytes."""
    return struct.pack("<I", len(OWNER)) + size + struct.pack("<I", NOTE_TYPE) + OWNER + b"\0\0"


def _digest(image: bytes, at: int) -> str:
    """The digest that belongs at a place in the library."""
    whole = hashlib.sha256(memoryview(image)[:at])
    whole.update(_UNSEALED.encode())
    whole.update(memoryview(image)[at + len(_UNSEALED) :])
    return whole.hexdigest()


def _place(image: bytes, place: str) -> tuple[int, int]:
    """Where the text of the manifest begins, and how many bytes it has."""
    reason = "is no ELF file of 64 bits, as shared libraries are"
    if image.startswith(b"\x7fELF\x02\x01"):  # 64 bits, little-endian
        found = re.search(_head(rb"(.{4})"), image, re.DOTALL)
        size = int.from_bytes(found[1], "little") if found else 0
        if found and _DIGEST_AT + len(_UNSEALED) <= size <= len(image) - found.end():
            return found.end(), size
        reason = "holds no manifest: it was cut, or not made by te-select"
    raise ArtifactError(f"{place} {reason}; expected a library as te_select.export makes it")
