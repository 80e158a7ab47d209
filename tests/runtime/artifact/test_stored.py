"""Artifacts on the disk stay whole while others write, read, kill or edit."""

import os
import stat
from pathlib import Path

from numpy._core import _multiarray_umath as umath
from pytest import fixture, mark, raises

from te_select import ArtifactError
from te_select.base import atomic
from te_select.runtime.artifact.stored import read, write, write_beside
from te_select.runtime.call.loading import load
from tests.support import flat
from tests.support.runtime_standin import ARGS, library_of

W = flat(8)
OTHER = flat(8, "int32")


@fixture
def pair():
    """A library of one kernel, and of two."""
    return library_of(W), library_of(OTHER, flat(9))


@fixture
def path(pair, tmp_path):
    return write(read(pair[0]), tmp_path / "mask.so")


def test_files_reach_the_disk_before_they_are_renamed(path, monkeypatch):
    events = []
    fsync = os.fsync
    replace = atomic.Path.replace

    def note_fsync(handle):
        events.append("fsync")
        fsync(handle)

    def note_replace(self, target):
        events.append(f"rename {target.name}")
        return replace(self, target)

    monkeypatch.setattr("os.fsync", note_fsync)
    monkeypatch.setattr("te_select.base.atomic.Path.replace", note_replace)
    write(read(path), path)
    assert events == ["fsync", "fsync", "rename mask.so", "rename mask.json", "fsync"]


def test_permissions_follow_the_umask(pair, tmp_path):
    before = os.umask(0o027)
    try:
        path = write(read(pair[0]), tmp_path / "mask.so")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    assert stat.S_IMODE(path.with_suffix(".json").stat().st_mode) == 0o640


@mark.parametrize(
    "text", ["", "{", "[]", "3", '{"format": 2, "a": {"kernels": 3}}', "[" * 100_000, "\xff"]
)
def test_file_that_is_no_manifest_is_not_replaced(pair, tmp_path, text):
    beside = tmp_path / "package.json"
    beside.write_text(text, encoding="latin-1")
    with raises(ArtifactError, match=r"package\.json is no manifest of te-select"):
        load(pair[0]).export(tmp_path / "package.so")
    assert beside.read_text(encoding="latin-1") == text
    assert not (tmp_path / "package.so").exists()
    beside.write_text('{"target": 0, "kernels": [], "sha256": "", "format": 99}')  # of another
    load(pair[0]).export(tmp_path / "package.so")


@mark.parametrize("length, fits", [(250, True), (251, False), (252, False)])
def test_library_of_a_long_name_has_its_manifest_or_is_not(pair, tmp_path, length, fits):
    """A name has 255 bytes at most, and that of the manifest is longer."""
    path = tmp_path / ("x" * length + ".so")
    if fits:
        load(pair[0]).export(path)
        assert (load(path)(*ARGS) == ARGS[0]).all()
    else:
        with raises(ArtifactError, match="cannot be written: File name too long"):
            load(pair[0]).export(path)
    assert len([*tmp_path.iterdir()]) == (2 if fits else 0)
    with raises(ArtifactError, match="cannot be read: File name too long"):
        load("a" * 253 + ".so")


def test_edits_beside_the_library_change_nothing_and_are_undone(path):
    beside = path.with_suffix(".json")
    text = beside.read_text()
    beside.write_text(text.replace('"lanes": 8', '"lanes": 9'))
    assert load(path).config == {"lanes": 8}
    assert write_beside(read(path), path) == ([f"{path.stem}.json"], [])
    assert beside.read_text() == text
    assert write_beside(read(path), path) == ([], [])
    beside.unlink()
    assert write_beside(read(path), path) == ([f"{path.stem}.json"], [])
    beside.write_text("{}")
    assert "json is no manifest of te-select" in write_beside(read(path), path)[1][0]
    assert beside.read_text() == "{}"


@mark.parametrize(
    "spoil, said",
    [
        (lambda image: b"", "is no ELF file of 64 bits"),
        (lambda image: image[: len(image) // 2], "holds no manifest: it was cut"),
        (lambda image: image[:16] + b"\1" + image[17:], r"\(the SHA-256 differs\)"),
        (lambda image: image[:-1] + b"\1", r"\(the SHA-256 differs\): it was changed or cut"),
        (
            lambda image: Path(umath.__file__).read_bytes(),
            "or not made by te-select; expected a library as te_select.export",
        ),
        (lambda image: image + b"\0", r"\(the SHA-256 differs\): it was changed or cut"),
        (lambda image: image.replace(b'"lanes":8', b'"lanes":9'), "the SHA-256 differs"),
    ],
)
def test_what_is_no_library_is_told_apart(path, spoil, said):
    image = path.read_bytes()
    path.write_bytes(spoil(image))
    with raises(ArtifactError, match=said):
        load(path)


def test_manifest_longer_than_the_one_inside_is_refused(path):
    found = read(path)
    longer = read(path).manifest
    versions = {**longer.versions, "more": "x" * 1000}
    with raises(ArtifactError, match="no room for this manifest"):
        found.alone(type(longer)(longer.kernels, longer.target, versions))
