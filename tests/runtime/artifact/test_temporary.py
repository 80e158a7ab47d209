"""Temporary files and folders: those of killed processes go, and nothing else does."""

import errno
import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest

from te_select.runtime.artifact import atomic, scratch
from tests.support.machines import OTHER_USER, needs_users
from tests.support.programs import ended

LEFT = f"{scratch.HIDDEN}{'0' * 16}"


def create(path: Path) -> int:
    return os.open(path, scratch.NEW, 0o600)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def killed(folder: Path) -> None:
    """A process that is killed with a temporary file and a folder."""
    code = """
import os, signal, sys
from pathlib import Path
from te_select.runtime.artifact import scratch
def create(path):
    return os.open(path, scratch.NEW, 0o600)
scratch.create(Path(sys.argv[1]), create, scratch.HIDDEN)
made, _ = scratch.create(Path(sys.argv[1]), scratch._create, scratch.VISIBLE)
(made / "kernels.o").touch()
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert ended(sys.executable, "-c", code, folder).returncode == -signal.SIGKILL


def test_what_a_killed_process_has_left_is_removed(tmp_path: Path) -> None:
    killed(tmp_path)
    assert len(names(tmp_path)) == 2
    scratch.clear(tmp_path, scratch.HIDDEN)
    (folder,) = tmp_path.iterdir()
    assert folder.is_dir()
    scratch.clear(tmp_path, scratch.VISIBLE)
    assert names(tmp_path) == set()


def test_folder_of_the_user_beside_an_output_stays(tmp_path: Path) -> None:
    """Such as a checkout that is named by its commit."""
    checkout = tmp_path / f"{scratch.VISIBLE}{'0' * 16}"
    (checkout / "src").mkdir(parents=True)
    atomic.replace(tmp_path / "mask.so", b"")
    assert (checkout / "src").is_dir()


@pytest.mark.parametrize("prefix", [scratch.HIDDEN, scratch.VISIBLE])
def test_only_what_is_made_with_a_prefix_is_removed(tmp_path: Path, prefix: str) -> None:
    as_file, as_folder = tmp_path / "files", tmp_path / "folders"
    for parent in (as_file, as_folder):
        parent.mkdir()
    (as_file / f"{prefix}{'0' * 16}").touch()
    (as_folder / f"{prefix}{'0' * 16}").mkdir()
    for parent in (as_file, as_folder):
        scratch.clear(parent, prefix)
    assert bool(names(as_file)) == (prefix == scratch.VISIBLE)
    assert bool(names(as_folder)) == (prefix == scratch.HIDDEN)


def test_what_a_living_process_has_made_stays(tmp_path: Path) -> None:
    path, handle = scratch.create(tmp_path, create, scratch.HIDDEN)
    scratch.clear(tmp_path, scratch.HIDDEN)
    assert path.exists()
    os.close(handle)
    scratch.clear(tmp_path, scratch.HIDDEN)
    assert not path.exists()


def refuse(*_: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("flock", [lambda *_: None, refuse], ids=["idle", "none"])
def test_nothing_is_removed_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flock: object
) -> None:
    """Another machine may be writing what lies there."""
    (tmp_path / LEFT).touch()
    monkeypatch.setattr(fcntl, "flock", flock)
    path, handle = scratch.create(tmp_path, create, scratch.HIDDEN)
    os.close(handle)
    scratch.clear(tmp_path, scratch.HIDDEN)
    assert names(tmp_path) == {LEFT, path.name}


def test_what_has_no_lock_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system had no lock left for its maker, and has one for the next process."""
    with monkeypatch.context() as short:
        short.setattr(fcntl, "flock", refuse)
        path, _ = scratch.create(tmp_path, scratch._create, scratch.VISIBLE)
    scratch.clear(tmp_path, scratch.VISIBLE)
    assert path.is_dir()


def test_folder_that_others_remove_is_named() -> None:
    with pytest.raises(scratch.NoRoomError, match="was removed in use"), scratch.folder() as made:
        made.rmdir()
        made.joinpath("kernels.o").touch()


@pytest.mark.parametrize(
    "name",
    [
        "te_select-older",
        "te_select-scratch-notes",
        f".mask.so{LEFT}",
        f"{LEFT}0",
        LEFT.upper(),
        f".{LEFT}",
        f"{LEFT}.so",
        LEFT[:-1],
    ],
)
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_other_names_stay(tmp_path: Path, name: str, kind: str) -> None:
    (tmp_path / name).touch() if kind == "file" else (tmp_path / name).mkdir()
    scratch.clear(tmp_path, scratch.HIDDEN)
    scratch.clear(tmp_path, scratch.VISIBLE)
    assert names(tmp_path) == {name}


@pytest.mark.parametrize("kind", ["pipe", "socket", "link", "link to a folder", "broken link"])
def test_neither_file_nor_folder_stays_and_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    folder, precious = tmp_path / "folder", tmp_path / "precious"
    folder.mkdir()
    precious.mkdir()
    (precious / "file").touch()
    planted = folder / LEFT
    if kind == "pipe":
        os.mkfifo(planted)
    elif kind == "socket":
        os.mknod(planted, 0o600 | 0o140000)
    else:
        ends = {"link": "file", "link to a folder": ".", "broken link": "missing"}
        planted.symlink_to(precious / ends[kind])
    scratch.clear(folder, scratch.HIDDEN)
    assert names(folder) == {LEFT}
    assert names(precious) == {"file"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
@needs_users
def test_what_another_user_has_left_stays(tmp_path: Path) -> None:
    (tmp_path / LEFT).touch()
    os.chown(tmp_path / LEFT, OTHER_USER, OTHER_USER)
    scratch.clear(tmp_path, scratch.HIDDEN)
    assert names(tmp_path) == {LEFT}


def test_folder_that_takes_no_files_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", Path("/proc")):
        with pytest.raises(FileNotFoundError):
            scratch.create(folder, create, scratch.HIDDEN)


def test_what_is_removed_as_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may look between making and locking."""
    made: list[Path] = []

    def taken_at_once(handle: int, operation: int) -> None:
        made.append(Path(f"/proc/self/fd/{handle}").readlink())
        if len(made) == 1:
            made[0].unlink()

    monkeypatch.setattr(fcntl, "flock", taken_at_once)
    path, handle = scratch.create(tmp_path, create, scratch.HIDDEN)
    os.close(handle)
    assert path == made[1]
    assert path.exists()


def test_what_is_removed_before_it_is_opened_is_made_again(tmp_path: Path) -> None:
    failed = []

    def create(path: Path) -> int:
        if len(failed) < 3:
            failed.append(path)
            raise FileNotFoundError
        return os.open(path, scratch.NEW, 0o600)

    path, handle = scratch.create(tmp_path, create, scratch.HIDDEN)
    os.close(handle)
    assert path.exists()
    assert len({path, *failed}) == 4
