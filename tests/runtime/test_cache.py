"""The cache: whole entries, of the user's own, no more than may be."""

import multiprocessing
import os
import stat
import sys
import time

import pytest

from te_select.runtime import cache


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("TE_SELECT_CACHE_DIR", str(path))
    monkeypatch.delenv("TE_SELECT_CACHE_SIZE", raising=False)
    return path


def test_what_was_written_is_read(folder):
    assert cache.read("a.so") is None
    path = cache.write("a.so", b"code")
    assert cache.read("a.so") == b"code"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.path.name for entry in cache.entries()] == ["a.so"]


def test_the_users_cache_folder_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("TE_SELECT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache.folder() == tmp_path / "te-select"


def test_the_same_folder_without_platformdirs(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.FOLDER, raising=False)
    for variable in (str(tmp_path), "", "  "):
        monkeypatch.setenv("XDG_CACHE_HOME", variable)
        expected = cache.folder()
        with monkeypatch.context() as without:
            without.setitem(sys.modules, "platformdirs", None)
            assert cache.folder() == expected


def test_a_folder_that_others_may_write_is_refused(folder):
    cache.write("a.so", b"code")
    folder.chmod(0o770)
    assert cache.read("a.so") is None
    assert "may be written by others" in cache.problem()
    with pytest.raises(cache.CacheError, match="chmod 700"):
        cache.write("b.so", b"code")


def test_an_entry_that_others_may_write_is_not_read():
    cache.write("a.so", b"code").chmod(0o606)
    assert cache.read("a.so") is None


def test_links_and_pipes_are_not_read(folder, tmp_path):
    cache.write("a.so", b"code")
    (folder / "b.so").symlink_to(folder / "a.so")
    os.mkfifo(folder / "c.so")
    assert cache.read("b.so") is None
    assert cache.read("c.so") is None


def test_the_least_recently_used_goes_first(folder, monkeypatch):
    monkeypatch.setenv("TE_SELECT_CACHE_SIZE", "1")
    third = b"x" * (400 << 10)
    for age, name in ((30, "a.so"), (20, "b.so")):
        path = cache.write(name, third)
        os.utime(path, (time.time() - age,) * 2)
    assert cache.read("a.so") == third  # used just now
    cache.write("c.so", third)
    assert {entry.path.name for entry in cache.entries()} == {"a.so", "c.so"}
    with pytest.raises(cache.CacheError, match="more than TE_SELECT_CACHE_SIZE allows"):
        cache.write("d.so", b"x" * (2 << 20))


def test_a_size_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("TE_SELECT_CACHE_SIZE", "1GB")
    with pytest.raises(cache.CacheError, match="expected a whole number of MiB"):
        cache.write("a.so", b"")


def test_a_folder_that_cannot_be_written(folder):
    folder.write_text("a file")
    with pytest.raises(cache.CacheError, match=r"cannot be written|is no folder"):
        cache.write("a.so", b"code")
    assert cache.read("a.so") is None
    assert cache.entries() == []


def test_what_killed_writers_have_left_goes(folder):
    cache.write("a.so", b"code")
    left, fresh = folder / ".b.so.te_select-1", folder / ".b.so.te_select-2"
    for path in (left, fresh):
        path.write_bytes(b"half")
    os.utime(left, (time.time() - 7200,) * 2)
    cache.write("c.so", b"code")
    assert not left.exists() and fresh.exists()
    assert len(cache.clear()) == 2
    assert list(folder.iterdir()) == []


def test_clear_leaves_what_is_not_ours(folder):
    cache.write("a.so", b"code")
    (folder / "notes.txt").write_text("mine")
    cache.clear()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def _write(number):
    for _ in range(30):
        cache.write("same.so", bytes([number]) * 100_000)
        found = cache.read("same.so")
        assert found is not None and len(set(found)) == 1 and len(found) == 100_000
    return True


def test_processes_write_one_entry_at_once():
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert all(pool.map(_write, range(4)))
