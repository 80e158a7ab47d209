"""Temporary folders: those without room are named, and those of killed processes go."""

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

from pytest import mark, raises

from te_select.base import scratch
from tests.support import names, script
from tests.support.machines import OTHER_USER, needs_users

LEFT = f".te_select-{'0' * 16}"


# ---- no room ------------------------------------------------------------------------------------


@mark.parametrize(
    "number, said",
    [
        (errno.ENOSPC, "does not take 1024 KiB .* set TMPDIR"),
        (errno.EMFILE, "no temporary file can be opened"),
        (errno.ENFILE, "no temporary file can be opened: .* raise ulimit -n"),
    ],
)
def test_folder_without_room_is_named(tmp_path, monkeypatch, number, said):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("os.posix_fallocate", Mock(side_effect=OSError(number, "none")))
    with raises(scratch.NoRoomError, match=said):
        scratch.make()
    assert names(tmp_path) == set()


def test_temporary_folder_that_is_no_text_is_named(tmp_path, monkeypatch):
    """TVM takes no such path."""
    folder = tmp_path / "a\udcff"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with raises(scratch.NoRoomError, match=r"is no path of text.*set TMPDIR"):
        scratch.make()
    assert names(folder) == set()


@mark.parametrize("words", [["env"], ["env", "--json"], ["--help"]])
def test_full_standard_output_is_one_line(words):
    command = [sys.executable, "-m", "te_select", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    said = "te-select: error: standard output cannot be used: No space left on device"
    assert done.returncode == 1 and done.stderr.startswith(said)
    assert done.stderr.count("\n") == 1


def test_folder_that_others_remove_is_named():
    with raises(scratch.NoRoomError, match="was removed in use"), scratch.folder() as made:
        made.rmdir()
        made.joinpath("kernels.o").touch()


# ---- what processes leave behind ----------------------------------------------------------------


def test_folder_of_a_killed_process_is_removed_by_the_next(tmp_path):
    code = """if True:
    import os, signal
    from te_select.base import scratch
    made = scratch.make()
    (made / "kernels.o").write_bytes(b"x" * 1000)
    print(made, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = [script(code, TMPDIR=tmp_path) for _ in range(2)]
    left = Path(killed[1].stdout.strip())
    assert names(tmp_path) == {left.name}  # the second has removed the first
    assert (left / "kernels.o").exists()
    clear(tmp_path)
    assert names(tmp_path) == set()


def clear(folder):
    """What every write does."""
    scratch.remove(scratch.make_within(folder))


def test_what_a_living_process_has_made_stays(tmp_path):
    made = scratch.make_within(tmp_path)
    clear(tmp_path)
    assert made.exists()
    os.close(scratch._held.pop(made)[0])
    clear(tmp_path)
    assert not made.exists()


def test_forked_child_leaves_its_parents_folder_alone():
    with scratch.folder(room=0) as folder:
        child = os.fork()
        if not child:
            scratch.remove(folder)
            os._exit(0)
        os.waitpid(child, 0)
        assert folder.exists()
    assert not folder.exists()
    scratch.remove(folder)


def refuse(*_):
    raise OSError(errno.ENOLCK, "No locks available")


@mark.parametrize("flock", [lambda *_: None, refuse])
def test_nothing_is_removed_without_locks(tmp_path, monkeypatch, flock):
    """Another machine may be writing what lies there."""
    (tmp_path / LEFT).mkdir()
    monkeypatch.setattr("fcntl.flock", flock)
    clear(tmp_path)
    assert names(tmp_path) == {LEFT}


def test_what_has_no_lock_is_left(tmp_path, monkeypatch):
    """The system had no lock left for its maker, and has one for the next process."""
    with monkeypatch.context() as short:
        short.setattr("fcntl.flock", refuse)
        made = scratch.make_within(tmp_path)
    clear(tmp_path)
    assert made.is_dir()


@mark.parametrize(
    "name",
    [
        LEFT[1:],  # such as a checkout that is named by its commit
        f".mask.so{LEFT}",
        f"{LEFT}0",
        LEFT.upper(),
        LEFT[:-1],
    ],
)
def test_folders_of_other_names_stay(tmp_path, name):
    (tmp_path / name).mkdir()
    clear(tmp_path)
    assert names(tmp_path) == {name}


@mark.parametrize("kind", ["file", "pipe", "link to a folder"])
def test_what_is_no_folder_stays_and_is_not_waited_for(tmp_path, kind):
    folder, precious = tmp_path / "folder", tmp_path / "precious"
    folder.mkdir()
    precious.mkdir()
    (precious / "file").touch()
    planted = folder / LEFT
    if kind == "file":
        planted.touch()
    elif kind == "pipe":
        os.mkfifo(planted)
    else:
        planted.symlink_to(precious)
    clear(folder)
    assert names(folder) == {LEFT}
    assert names(precious) == {"file"}


@mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
@needs_users
def test_what_another_user_has_left_stays(tmp_path):
    (tmp_path / LEFT).mkdir()
    os.chown(tmp_path / LEFT, OTHER_USER, OTHER_USER)
    clear(tmp_path)
    assert names(tmp_path) == {LEFT}


@mark.parametrize("before", ["open", "flock"])
def test_what_is_removed_as_it_is_made_is_made_again(tmp_path, monkeypatch, before):
    """Another process may look between making and locking."""
    taken = []
    module = os if before == "open" else fcntl
    function = getattr(module, before)

    def taken_at_once(*arguments):
        if len(taken) < 3:
            (left,) = tmp_path.iterdir()
            taken.append(left.name)
            left.rmdir()
        return function(*arguments)

    monkeypatch.setattr(module, before, taken_at_once)
    made = scratch.make_within(tmp_path)
    monkeypatch.undo()
    assert made.exists() and made.name not in taken and len({*taken}) == 3
    scratch.remove(made)
