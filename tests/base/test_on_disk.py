"""Files are opened only if they are regular ones."""

import os

import pytest

from te_select.base import on_disk
from te_select.errors import ArtifactError
from tests.support.programs import open_files


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_regular_file_is_refused_and_closed(make, tmp_path):
    make(tmp_path / "log")
    opened = open_files()
    with pytest.raises(ArtifactError, match="log is not a regular file; expected records"):
        on_disk.read(tmp_path / "log", "records")
    assert open_files() == opened
    assert on_disk.is_folder(tmp_path / "log") == (make is os.mkdir)
    assert on_disk.is_missing(tmp_path / "log" / "below")
    assert not on_disk.is_missing(tmp_path / ("x" * 256))  # a name too long


def test_file_that_is_too_large_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(ArtifactError, match="large is larger than 256 MiB; expected a log"):
        on_disk.read(path, "a log")
    monkeypatch.setattr(on_disk, "LARGEST", 9)
    path.write_bytes(bytes(9))
    assert len(on_disk.read(path)) == 9
