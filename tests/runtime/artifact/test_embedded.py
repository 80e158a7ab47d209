"""The note of a library among those of others, in ELF files made by hand."""

from struct import pack

from pytest import mark, raises

from te_select import ArtifactError
from te_select.runtime.artifact.embedded import NOTE_TYPE, OWNER, _unsealed, read, seal
from te_select.runtime.artifact.manifest import Manifest

TARGET = {"name": "x", "kind": "cpu", "architecture": "x86_64"}
TEXT = b'{"sha256": "' + b"0" * 64 + b'"}'


def note(owner, text, kind):
    """A note, whose owner and text are padded to four bytes."""
    sizes = pack("<III", len(owner), len(text), kind)
    return sizes + owner + bytes(-len(owner) % 4) + text + bytes(-len(text) % 4)


def elf(*notes):
    """A 64-bit ELF file of one segment, which holds notes."""
    inside = b"".join(notes)
    header = pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01", 3, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    segment = pack("<IIQQQQQQ", 4, 4, 120, 0, 0, len(inside), len(inside), 4)
    return header + segment + inside


OURS = note(OWNER, TEXT, NOTE_TYPE)


@mark.parametrize("length", range(5))
def test_note_is_found_behind_others_of_any_length(length):
    others = note(b"GNU\0", b"x" * length, 3), note(b"stapsdt\0"[: length + 1], b"", 1)
    image = elf(*others, OURS)
    sealed = seal(image)
    assert len(sealed) == len(image)
    assert TEXT in image and TEXT not in sealed


@mark.parametrize(
    "image",
    [
        elf(),
        elf(note(b"GNU\0", TEXT, NOTE_TYPE)),
        elf(note(OWNER, TEXT, 2)),
        elf(note(OWNER, TEXT[:70], NOTE_TYPE)),  # without room for a digest
        elf(OURS)[:-8],
        b"\x7fELF\x01" + elf(OURS)[5:],
    ],
    ids=["none", "owner", "type", "short", "cut", "32 bits"],
)
def test_what_is_no_note_of_ours_is_none(image):
    with raises(ArtifactError, match=r"^x\.so (is no ELF|holds no manifest).*; expected a"):
        read(image, "x.so")


def test_library_never_sealed_or_changed_is_said_apart():
    manifest = Manifest((), {**TARGET, "cpu_features": []}, {})
    image = elf(note(OWNER, _unsealed(manifest), NOTE_TYPE))
    sealed = seal(image)
    assert read(sealed, "x.so")[0] == read(image, "x.so", check=False)[0]
    for odd, said in (
        (image, "linked into it as an object"),
        (sealed + b"1", "was changed or cut"),
    ):
        with raises(ArtifactError, match=said):
            read(odd, "x.so")
        read(odd, "x.so", check=False)
