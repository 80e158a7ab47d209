"""The note of a library among those of others, in ELF files made by hand."""

import struct

import pytest

from te_select.errors import ArtifactError
from te_select.runtime.artifact import embedded
from te_select.runtime.artifact.manifest import Manifest

TARGET = {"name": "x", "kind": "cpu", "architecture": "x86_64"}
TEXT = b'{"sha256": "' + b"0" * 64 + b'"}'


def note(owner, text, kind):
    """A note, whose owner and text are padded to four bytes."""
    sizes = struct.pack("<III", len(owner), len(text), kind)
    return sizes + owner + bytes(-len(owner) % 4) + text + bytes(-len(text) % 4)


def elf(*notes):
    """A 64-bit ELF file of one segment, which holds notes."""
    inside = b"".join(notes)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(inside), len(inside), 4)
    return header + segment + inside


OURS = note(embedded.OWNER, TEXT, embedded.NOTE_TYPE)


@pytest.mark.parametrize("length", range(5))
def test_note_is_found_behind_others_of_any_length(length):
    others = note(b"GNU\0", b"x" * length, 3), note(b"stapsdt\0"[: length + 1], b"", 1)
    image = elf(*others, OURS)
    sealed = embedded.seal(image)
    assert len(sealed) == len(image)
    assert TEXT in image and TEXT not in sealed


@pytest.mark.parametrize(
    "image",
    [
        elf(),
        elf(note(b"GNU\0", TEXT, embedded.NOTE_TYPE)),
        elf(note(embedded.OWNER, TEXT, 2)),
        elf(note(embedded.OWNER, TEXT[:70], embedded.NOTE_TYPE)),  # without room for a digest
        elf(OURS)[:-8],
        b"\x7fELF\x01" + elf(OURS)[5:],
    ],
    ids=["none", "owner", "type", "short", "cut", "32 bits"],
)
def test_what_is_no_note_of_ours_is_none(image):
    with pytest.raises(ArtifactError, match=r"^x\.so (is no ELF|holds no manifest).*; expected a"):
        embedded.read(image, "x.so")


def test_library_never_sealed_or_changed_is_said_apart():
    manifest = Manifest((), {**TARGET, "cpu_features": []}, {})
    image = elf(note(embedded.OWNER, embedded._unsealed(manifest), embedded.NOTE_TYPE))
    sealed = embedded.seal(image)
    assert embedded.read(sealed, "x.so")[0] == embedded.read(image, "x.so", check=False)[0]
    for odd, said in (
        (image, "linked into it as an object"),
        (sealed + b"1", "was changed or cut"),
    ):
        with pytest.raises(ArtifactError, match=said):
            embedded.read(odd, "x.so")
        embedded.read(odd, "x.so", check=False)
