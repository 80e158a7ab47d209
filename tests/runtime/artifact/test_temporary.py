"""Temporary folders: those of killed processes go, and nothing else does."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from te_select.runtime.artifact import scratch
from tests.support.machines import OTHER_USER, needs_users

LEFT = f".te_select-{'0' * 16}"


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def clear(folder: Path) -> None:
    """What every write does."""
    scratch.remove(scratch.make_within(folder))


def test_what_a_living_process_has_made_stays(tmp_path: Path) -> None:
    made = scratch.make_within(tmp_path)
    clear(tmp_path)
    assert made.exists()
    os.close(scratch._held.pop(made)[0])
    clear(tmp_path)
    assert not made.exists()


def refuse(*_: int) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("flock", [lambda *_: None, refuse], ids=["idle", "none"])
def test_nothing_is_removed_without_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flock: object
) -> None:
    """Another machine may be writing what lies there."""
    (tmp_path / LEFT).mkdir()
    monkeypatch.setattr(fcntl, "flock", flock)
    clear(tmp_path)
    assert names(tmp_path) == {LEFT}


def test_what_has_no_lock_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system had no lock left for its maker, and has one for the next process."""
    with monkeypatch.context() as short:
        short.setattr(fcntl, "flock", refuse)
        made = scratch.make_within(tmp_path)
    clear(tmp_path)
    assert made.is_dir()


def test_folder_that_others_remove_is_named() -> None:
    with pytest.raises(scratch.NoRoomError, match="was removed in use"), scratch.folder() as made:
        made.rmdir()
        made.joinpath("kernels.o").touch()


@pytest.mark.parametrize(
    "name",
    [
        "te_select-older",
        LEFT[1:],  # such as a checkout that is named by its commit
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
    clear(tmp_path)
    assert names(tmp_path) == {name}


@pytest.mark.parametrize(
    "kind", ["file", "pipe", "socket", "link", "link to a folder", "broken link"]
)
def test_what_is_no_folder_stays_and_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    folder, precious = tmp_path / "folder", tmp_path / "precious"
    folder.mkdir()
    precious.mkdir()
    (precious / "file").touch()
    planted = folder / LEFT
    if kind == "file":
        planted.touch()
    elif kind == "pipe":
        os.mkfifo(planted)
    elif kind == "socket":
        os.mknod(planted, 0o600 | 0o140000)
    else:
        ends = {"link": "file", "link to a folder": ".", "broken link": "missing"}
        planted.symlink_to(precious / ends[kind])
    clear(folder)
    assert names(folder) == {LEFT}
    assert names(precious) == {"file"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
@needs_users
def test_what_another_user_has_left_stays(tmp_path: Path) -> None:
    (tmp_path / LEFT).mkdir()
    os.chown(tmp_path / LEFT, OTHER_USER, OTHER_USER)
    clear(tmp_path)
    assert names(tmp_path) == {LEFT}


def test_folder_that_takes_no_folders_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path / "missing", Path("/proc")):
        with pytest.raises(FileNotFoundError):
            scratch.make_within(folder)


@pytest.mark.parametrize("before", ["open", "flock"])
def test_what_is_removed_as_it_is_made_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Another process may look between making and locking."""
    taken: list[str] = []

    def taken_at_once(function: object) -> object:
        def call(*arguments: object) -> object:
            if len(taken) < 3:
                (left,) = tmp_path.iterdir()
                taken.append(left.name)
                left.rmdir()
            return function(*arguments)  # type: ignore[operator]

        return call

    module = os if before == "open" else fcntl
    monkeypatch.setattr(module, before, taken_at_once(getattr(module, before)))
    made = scratch.make_within(tmp_path)
    monkeypatch.undo()
    assert made.exists() and made.name not in taken and len({*taken}) == 3
    scratch.remove(made)
