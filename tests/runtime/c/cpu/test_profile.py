"""Profiles: by the machine, by the user's file, by the environment; and their description."""

import ctypes
import os

from pytest import fixture, mark, param

from te_select.runtime.call.cpu.profile import DECISIONS, NEVER, Profile
from tests.support import c_half
from tests.support.machines import on_x86_64

KB, MB = 1 << 10, 1 << 20
EMERALD_RAPIDS = (b"GenuineIntel", 6, 0xCF, 2 * MB, 300 * MB, 128)
ALDER_LAKE = (b"GenuineIntel", 6, 0x97, 1280 * KB, 32 * MB, 24)
ZEN_3 = (b"AuthenticAMD", 25, 1, 512 * KB, 32 * MB, 16)
ZEN_4 = (b"AuthenticAMD", 25, 17, MB, 32 * MB, 2)
ZEN_5 = (b"AuthenticAMD", 26, 2, MB, 32 * MB, 8)
ZEN_6 = (b"AuthenticAMD", 27, 1, MB, 32 * MB, 16)
UNNAMED = (b"", 0, 0, MB, 32 * MB, 16)
PACKAGE = (b"AuthenticAMD", 27, 1, MB, 2048 * MB, 16)  # whose L3 a hypervisor shows as one


@fixture
def home(tmp_path, monkeypatch):
    """An empty home folder, and no variable that changes the profile."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    return tmp_path / "config"


@fixture
def file(home):
    """The place of the user's own file for an Emerald Rapids, in a folder that is there."""
    path = home / "te-select" / "machines" / f"GenuineIntel-6-207-{300 * MB // KB}"
    path.parent.mkdir(parents=True)
    return path


@fixture
def library(home):
    path = c_half.built("profile_test.c", ("cpu/profile.c", "cpu/processors.c", "cpu/sysfs.c"))
    return c_half.copied(path, pretend="siiqqi>s", find=">s", streams="qqii")


def pretend(library, machine):
    return Profile.parse(library.pretend(*machine).decode())


@mark.parametrize(
    "machine, origin, expected",
    [
        (EMERALD_RAPIDS, "reasoned: mesh", (2048, 819, 2457, 256, 2, 1)),
        (ALDER_LAKE, "reasoned: intel", (16384, 0, 13107, 256, 2, 1)),
        (ZEN_3, "measured: znver3", (13664, 0, 10747, 256, 1, 0)),
        (ZEN_4, "measured: znver4", (19660, 0, 18022, 256, 1, 0)),
        (ZEN_5, "measured: znver5", (19660, 0, 22937, 384, 1, 0)),
        (ZEN_6, "reasoned: amd", (16384, 0, 13107, 256, 1, 0)),
        (PACKAGE, "reasoned: amd", (65536, 0, 52428, 256, 1, 0)),
        param(UNNAMED, "reasoned: x86-64", (16384, 0, 13107, 256, 1, 0), marks=on_x86_64),
    ],
)
def test_rule_of_a_machine_is_in_shares_of_its_caches(library, machine, origin, expected):
    """In KB: stores and fills past the cache, and the bytes for another thread."""
    found = pretend(library, machine)
    stream, each, fill, per_l3, reads, grain, skip, backwards = found.decisions.values()
    shares = [size // KB for size in (stream, each, fill, grain)]
    assert (found.origin, (*shares, skip, backwards)) == (origin, expected)
    assert (per_l3, reads) == (0, 50)


@mark.parametrize(
    "machine, stream, fill",
    [
        (ZEN_4, {1: 0.6, 2: 1.2, 3: 1.8, 8: 4.8}, {2: 1.1}),
        (ZEN_5, {1: 0.6, 2: 1.2, 3: 1.25, 9: 2.5}, {1: 0.7, 2: 1.25, 8: 1.25}),
    ],
)
def test_stores_pass_the_cache_beyond_a_share_of_the_l3(library, machine, stream, fill):
    """By the number of threads, of which only the two of a Zen 4 share a cache."""
    pretend(library, machine)
    for threads, share in stream.items():
        size = round(32 * MB * share)
        assert [library.streams(size + more, 0, 0, threads) for more in (-100, 100)] == [0, 1]
    for threads, share in fill.items():
        size = round(32 * MB * share)
        assert [library.streams(0, size + more, 1, threads) for more in (-100, 100)] == [0, 1]


def test_only_possible_sizes_of_caches_are_taken(library):
    def caches(l2, l3):
        machine = pretend(library, (b"AuthenticAMD", 25, 17, l2, l3, 0)).machine
        return machine["l2"], machine["l3"], machine["threads_per_l3"]

    for l2, l3 in ((64 * KB, MB), (256 * MB, 2048 * MB)):
        assert caches(l2, l3) == (l2, l3, 1)
    for l2, l3 in ((64 * KB - 1, MB - 1), (256 * MB + 1, 2048 * MB + 1)):
        assert caches(l2, l3) == (MB, 32 * MB, 1)
    for l1, taken in ((16 * KB, 1), (16 * KB - 1, 0), (MB, 1), (MB + 1, 0)):
        ctypes.c_int64.in_dll(library, "l1").value = l1
        assert f"\nl1 = {l1 if taken else 32 * KB}\n" in library.pretend(*ZEN_4).decode()


def test_sums_of_thresholds_do_not_wrap_around(library, monkeypatch):
    largest = ",".join(f"{key}={NEVER}" for key in DECISIONS[:5])
    monkeypatch.setenv("TE_SELECT_PROFILE", largest)
    pretend(library, (b"AuthenticAMD", 25, 17, MB, 32 * MB, 1))
    assert not library.streams((1 << 63) - 1, 0, 0, 2**31 - 1)


def test_file_of_the_user_replaces_what_it_names(library, file):
    before = pretend(library, EMERALD_RAPIDS)
    assert before.file == str(file)
    lines = "skip = 0\r\nstream_per_l3=77\nfill_per_l3 =78\nfill_per_thread= \t79\n"
    file.write_text(f"# measured\n\n  {lines}")
    after = pretend(library, EMERALD_RAPIDS)
    assert after.origin == "measured by the user"
    named = {"skip": 0, "stream_per_l3": 77, "fill_per_l3": 78, "fill_per_thread": 79}
    assert after.decisions == before.decisions | named
    assert pretend(library, ZEN_4).origin == "measured: znver4"  # it has another file


@mark.parametrize(
    "text, problem",
    [
        ("# nothing\n", "it is empty"),
        ("skip = 1\nstream", "line 2 has no '='"),
        ("skip = -1\n", "line 1 has a value that is no whole number"),
        ("skip = 1 2\n", "line 1 has a value that is no whole number"),
        ("skip = 3\n", "line 1 has a value that is out of range"),
        ("bytes_per_thread = 1023\n", "line 1 has a value that is out of range"),
        ("backwards = 2\n", "line 1 has a value that is out of range"),
        (f"skip = {10**40}\n", "line 1 has a value that is out of range"),
        ("skip = 1\nstream_per_thread = 10\0\0\0\n", "line 2 has a byte of 0"),
        ("skip = 1\n# half a comment\0\n", "line 2 has a byte of 0"),
        ("x" * 400 + "=1\nskip = 1\n", "line 1 has a key that is not known"),
        ("x" * 70_000, "it is no regular file of at most 64 KB"),
    ],
    ids=range(12),
)
def test_damaged_file_of_the_user_is_left_out_whole_and_named(library, file, text, problem):
    table = pretend(library, EMERALD_RAPIDS).decisions
    file.write_text(text)
    found = pretend(library, EMERALD_RAPIDS)
    assert found.origin == "reasoned: mesh"
    assert found.decisions == table
    assert found.problem.startswith(f"{file} is left out: ")
    assert problem in found.problem
    assert not found.is_refused


@mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_pipe_or_endless_file_in_its_place_is_left_out(library, file, make):
    make(file)
    assert "it is no regular file" in pretend(library, EMERALD_RAPIDS).problem


@mark.parametrize("base", ["", "relative", "x" * 5000])
def test_without_a_home_there_is_no_file(library, monkeypatch, base):
    monkeypatch.setenv("XDG_CONFIG_HOME", base)
    monkeypatch.setenv("HOME", f"/{base}" if len(base) > 1000 else base)
    assert pretend(library, EMERALD_RAPIDS).file == ""


def test_file_lies_in_the_config_folder_of_the_home(library, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("HOME", "/home")
    assert pretend(library, UNNAMED).file == "/home/.config/te-select/machines/cpu-0-0-32768"


@mark.parametrize("end", "\n\r\x0b\x1c\x85\u2028")
def test_end_of_a_line_in_the_name_of_the_home_does_no_harm(library, home, monkeypatch, end):
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{home}{end}a")
    found = pretend(library, EMERALD_RAPIDS)
    assert found.file.startswith("" if end == "\n" else f"{home}{end}a/")
    assert (found.origin, found.problem) == ("reasoned: mesh", "")


def test_environment_overrides_the_file(library, file, monkeypatch):
    file.write_text("skip = 0\nbackwards = 0\n")
    monkeypatch.setenv("TE_SELECT_PROFILE", " skip = 1 ,fill_per_l3=9")
    found = pretend(library, EMERALD_RAPIDS)
    assert found.origin == "TE_SELECT_PROFILE"
    decisions = found.decisions
    assert (decisions["skip"], decisions["backwards"], decisions["fill_per_l3"]) == (1, 0, 9)


@mark.parametrize("text", ["skip", "skip=1,,x", "skip=1;", "=", "é=1", "skip=1," * 99])
def test_environment_that_is_no_list_is_refused(library, monkeypatch, text):
    monkeypatch.setenv("TE_SELECT_PROFILE", text)
    found = pretend(library, EMERALD_RAPIDS)
    assert found.is_refused and found.problem.startswith("TE_SELECT_PROFILE")


@mark.parametrize("threads", [1, 4])
def test_library_says_from_where_on_stores_go_past_the_cache(library, monkeypatch, threads):
    sizes = f"stream_per_thread={6 * MB},stream_per_l3=5,fill_per_thread=7,fill_per_l3={NEVER}"
    monkeypatch.setenv("TE_SELECT_PROFILE", sizes)
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", str(threads))
    past = Profile.parse(library.find().decode()).past_the_cache
    first = past["stores_past_the_cache"]
    assert [library.streams(moved, 0, 0, threads) for moved in (first - 1, first)] == [0, 1]
    assert past["fills_past_the_cache"] == NEVER


@mark.parametrize("kind", ["stream", "fill"])
def test_threshold_that_is_never_is_not_lowered_to_the_caches(library, monkeypatch, kind):
    monkeypatch.setenv("TE_SELECT_PROFILE", f"{kind}_per_thread={NEVER}")
    past = Profile.parse(library.find().decode()).past_the_cache
    assert past[{"stream": "stores", "fill": "fills"}[kind] + "_past_the_cache"] == NEVER
