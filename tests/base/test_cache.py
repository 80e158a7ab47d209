"""The cache: whole entries, of the user's own, no more than may be."""

import stat
import time
from os import mkfifo, utime
from pathlib import Path
from unittest.mock import Mock

from pytest import fixture, mark, raises

from te_select import errors
from te_select.base import cache
from tests.support import names


def named(what):
    return cache.name_of(what, "0123456789abcdef01234567")


@fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    path = tmp_path / "cache"
    monkeypatch.setenv("TE_SELECT_CACHE_DIR", str(path))
    monkeypatch.delenv("TE_SELECT_CACHE_SIZE", raising=False)
    return path


def test_what_was_written_is_read(folder):
    assert cache.read(named("a")) is None
    cache.write(named("a"), b"old").chmod(0o644)
    path = cache.write(named("a"), b"code")
    assert cache.read(named("a")) == b"code"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [path.name for path in cache.entries()] == [named("a")]


@mark.parametrize(
    "variable, place", [("/xdg", "/xdg"), ("  ", "/home/.cache"), ("xdg", "/home/.cache")]
)
def test_folder_is_the_users_own_by_default(monkeypatch, variable, place):
    monkeypatch.delenv(cache.FOLDER, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    monkeypatch.setenv("HOME", "/home")
    assert cache.folder() == Path(place, "te-select")


def test_a_folder_that_others_may_write_is_refused(folder):
    cache.write(named("a"), b"code")
    folder.chmod(0o770)
    assert cache.read(named("a")) is None
    assert "may be written by others" in cache.problem()
    with raises(cache.CacheError, match="chmod 700"):
        cache.write(named("b"), b"code")


def test_an_entry_that_others_may_write_is_not_read():
    cache.write(named("a"), b"code").chmod(0o606)
    assert cache.read(named("a")) is None


def test_links_and_pipes_are_not_read(folder, tmp_path):
    cache.write(named("a"), b"code")
    (folder / named("b")).symlink_to(folder / named("a"))
    mkfifo(folder / named("c"))
    assert cache.read(named("b")) is None
    assert cache.read(named("c")) is None


def test_the_least_recently_used_goes_first(folder, monkeypatch):
    monkeypatch.setenv("TE_SELECT_CACHE_SIZE", "1")
    third = b"x" * (400 << 10)
    for age, name in ((30, named("a")), (20, named("b"))):
        path = cache.write(name, third)
        utime(path, (time.time() - age,) * 2)
    assert cache.read(named("a")) == third  # used just now
    cache.write(named("c"), third)
    assert {path.name for path in cache.entries()} == {named("a"), named("c")}
    with raises(cache.CacheError, match="more than TE_SELECT_CACHE_SIZE allows"):
        cache.write(named("d"), b"x" * (2 << 20))


def test_entries_that_fill_the_cache_to_the_last_byte_stay(monkeypatch):
    monkeypatch.setenv("TE_SELECT_CACHE_SIZE", "1")
    for name in (named("a"), named("b")):
        cache.write(name, b"x" * (512 << 10))
    assert {path.name for path in cache.entries()} == {named("a"), named("b")}
    cache.write(named("c"), bytes(1 << 20))
    assert [path.name for path in cache.entries()] == [named("c")]


def test_a_folder_that_cannot_be_written(folder):
    folder.write_text("a file")
    with raises(cache.CacheError, match=r"cannot be used|is no folder"):
        cache.write(named("a"), b"code")
    assert cache.read(named("a")) is None
    assert cache.entries() == {}


def test_what_killed_writers_have_left_goes(folder):
    left = folder / f".te_select-{0:016x}"
    cache.write(named("a"), b"code")
    left.mkdir()
    cache.clear()
    assert list(folder.iterdir()) == []


OTHERS = (
    "mask.so",
    "kernel-select-0123456789abcdef01234567.so",
    "te_select-0123456789abcdef01234567.so",
    "te_select-a-0123456789ABCDEF01234567.so",
    "te_select-a-0123456789abcdef01234567.so.old",
    ".te_select-a-0123456789abcdef01234567.so",
)


def test_files_of_others_are_never_counted_nor_removed(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("TE_SELECT_CACHE_SIZE", "1")
    precious = tmp_path / "precious.so"
    precious.write_bytes(b"precious")
    cache.write(named("a"), b"")
    for name in OTHERS:
        (folder / name).write_bytes(bytes(300 << 10))
    (folder / named("link")).symlink_to(precious)
    (folder / named("folder")).mkdir()
    mkfifo(folder / named("pipe"))
    before = names(folder) - {named("a")}
    for number in range(5):
        cache.write(named(f"n{number}"), bytes(400 << 10))
    assert {path.name for path in cache.entries()} == {named("n3"), named("n4")}
    assert len(cache.clear()) == 2
    assert cache.entries() == {}
    assert names(folder) == before
    assert precious.read_bytes() == b"precious"


def test_problem_is_that_of_the_size_or_of_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "missing"))
    assert cache.problem() == ""  # it will be made
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "file" / "below"))
    assert "Not a directory" in cache.problem()
    monkeypatch.setenv(cache.SIZE, "many")
    assert cache.problem().startswith("TE_SELECT_CACHE_SIZE is 'many'")
    monkeypatch.delenv(cache.SIZE)
    monkeypatch.setenv(cache.FOLDER, "~no-such-user/x")
    assert cache.problem().startswith("TE_SELECT_CACHE_DIR is '~no-such-user/x': ")


def test_taken_entry_that_is_damaged_goes_unless_it_is_to_stay():
    def use(_data):
        raise errors.ArtifactError

    for stays in (True, False):
        path = cache.write(cache.name_of("it", "a" * cache.DIGITS), b"damaged")
        assert cache.taken(path.name, use, **{"damaged": False} if stays else {}) is None
        assert path.exists() == stays


@mark.parametrize("owner, mode, mine", [(0, 0, 1), (7, 0, 1), (8, 0, 0), (7, 0o20, 0), (7, 2, 0)])
def test_folder_is_ones_own_or_roots(monkeypatch, owner, mode, mine):
    monkeypatch.setattr("os.geteuid", lambda: 7)
    assert cache._is_mine(Mock(st_uid=owner, st_mode=mode)) == mine
