"""Files are opened only if they are regular ones."""

import os

from pytest import mark, raises

from te_select import ArtifactError
from te_select.base.on_disk import is_folder, is_missing, read
from tests.support import open_files


@mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_refused_and_closed(make, tmp_path):
    make(tmp_path / "log")
    opened = open_files()
    with raises(ArtifactError, match="log is not a regular file; expected records"):
        read(tmp_path / "log", "records")
    assert open_files() == opened
    assert is_folder(tmp_path / "log") == (make is os.mkdir)
    assert is_missing(tmp_path / "log" / "below")
    assert not is_missing(tmp_path / ("x" * 256))  # a name too long


def test_file_that_is_too_large_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    with raises(ArtifactError, match="large is larger than 256 MiB; expected a log"):
        read(path, "a log")
    monkeypatch.setattr("te_select.base.on_disk.LARGEST", 9)
    path.write_bytes(bytes(9))
    assert len(read(path)) == 9
