"""Files that appear as a whole: planted files, long names, and disks that fail."""

import errno
import os
from pathlib import Path

from pytest import mark, raises

from te_select import ArtifactError
from te_select.base.atomic import replace, replace_all
from tests.support import names, open_files


def test_link_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "mask.so").symlink_to(tmp_path / "precious")
    before = open_files()
    replace(tmp_path / "mask.so", b"new")
    assert open_files() == before
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "mask.so").read_bytes() == b"new"


@mark.parametrize("other", ["x" * 256, "folder"])
def test_no_file_is_replaced_if_another_cannot_be(tmp_path, other):
    (tmp_path / "folder").mkdir()
    path = tmp_path / "mask.so"
    path.write_bytes(b"old")
    with raises(ArtifactError, match=r"cannot be written: (File name too long|it is a folder)"):
        replace_all({path: b"new", tmp_path / other: b"new"})
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"mask.so", "folder"}


def test_file_in_the_place_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").touch()
    said = "b.so cannot be written: Not a directory"
    for path in (tmp_path / "file" / "b.so", tmp_path / "file" / "c" / "b.so"):
        with raises(ArtifactError, match=said):
            replace(path, b"")


@mark.parametrize("owner, function", [(os, "fsync"), (Path, "replace")])
def test_disk_that_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, owner, function):
    path = tmp_path / "mask.so"
    path.write_bytes(b"old")
    before = open_files()

    def failing(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(owner, function, failing)
    with raises(ArtifactError, match="cannot be written: Input/output error"):
        replace(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == {"mask.so"}
    assert open_files() == before


def test_folder_that_cannot_be_synced_is_no_error(tmp_path, monkeypatch):
    """The files are there already."""
    fsync = os.fsync
    synced = []

    def only_files(handle):
        synced.append(handle)
        if Path(f"/proc/self/fd/{handle}").is_dir():
            raise OSError(errno.EIO, "Input/output error")
        fsync(handle)

    monkeypatch.setattr("os.fsync", only_files)
    replace(tmp_path / "mask.so", b"new")
    assert len(synced) == 2
    assert names(tmp_path) == {"mask.so"}


@mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
@mark.parametrize("name", ["seen.json", "mask.so"])
def test_file_that_is_replaced_keeps_its_permissions(tmp_path, name, mode):
    path = tmp_path / name
    path.write_bytes(b"old")
    path.chmod(mode)
    replace(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", mode)
