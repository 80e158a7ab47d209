"""Profiles: by the machine, by the user's file, by the environment; and their description."""

import ctypes
import os
import platform

import numpy as np
import pytest
import tvm_ffi

import te_select
from te_select import Workload
from te_select.runtime.call.cpu.profile import DECISIONS, NEVER, Profile
from tests.support import c_half
from tests.support.runtime_standin import build

KB, MB = 1 << 10, 1 << 20
LATE = f"fill_per_thread={NEVER},fill_reads="
OTHER = "x86-64" if platform.machine() == "x86_64" else "generic"  # that no table has
EMERALD_RAPIDS = (b"GenuineIntel", 6, 0xCF, 2 * MB, 300 * MB, 128)
ZEN_4 = (b"AuthenticAMD", 25, 17, MB, 32 * MB, 2)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("profile")
    return c_half.build(
        folder, "profile_test.c", ["cpu/profile.c", "cpu/processors.c", "cpu/sysfs.c"]
    )


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty home folder, and no variable that changes the profile."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    return tmp_path / "config"


@pytest.fixture
def file(home):
    """The place of the user's own file for an Emerald Rapids, in a folder that is there."""
    path = home / "te-select" / "machines" / f"GenuineIntel-6-207-{300 * MB // KB}"
    path.parent.mkdir(parents=True)
    return path


@pytest.fixture
def library(built, home, tmp_path):
    loaded = c_half.copied(built, tmp_path)
    loaded.pretend.restype = loaded.find.restype = ctypes.c_char_p
    loaded.pretend.argtypes = (
        *(ctypes.c_char_p, ctypes.c_int, ctypes.c_int),
        *(ctypes.c_int64, ctypes.c_int64, ctypes.c_int),
    )
    loaded.streams.argtypes = (ctypes.c_int64, ctypes.c_int64, ctypes.c_int, ctypes.c_int)
    return loaded


def pretend(library, machine):
    return Profile.parse(library.pretend(*machine).decode())


def fills(library, out, threads):
    """Whether a call that reads a byte for each four of output stores past the cache."""
    return library.streams(0, out, 1, threads)


def test_this_machine_is_described(library):
    found = Profile.parse(library.find().decode())
    assert found.machine["l2"] >= 64 * KB
    assert found.machine["l3"] >= MB
    assert found.machine["threads"] >= 1
    assert found.origin.startswith(("measured: ", "reasoned: "))
    assert set(found.decisions) == set(DECISIONS)
    assert (found.problem, found.is_refused) == ("", False)


def test_mesh_server_stores_past_the_cache_beyond_its_l2(library):
    found = pretend(library, EMERALD_RAPIDS)
    assert found.origin == "reasoned: mesh"
    assert (found.decisions["skip"], found.decisions["backwards"]) == (2, 1)
    for threads, first in ((1, 2 * MB), (2, 4 * MB), (32, 64 * MB)):
        more = first + MB
        assert not library.streams(first, 0, 0, threads)
        assert library.streams(more, 0, 0, threads)
    assert not fills(library, 47 * MB // 10, 2)
    assert fills(library, 49 * MB // 10, 2)


ZEN_3 = (b"AuthenticAMD", 25, 1, 512 * KB, 32 * MB, 16)
ZEN_5 = (b"AuthenticAMD", 26, 2, MB, 32 * MB, 8)
UNKNOWN = [
    (b"AuthenticAMD", 27, 1, MB, 32 * MB, 16),
    (b"GenuineIntel", 6, 0x97, 1280 * KB, 32 * MB, 24),
    *[(b"", 0, 0, MB, 32 * MB, 8)] * (OTHER == "x86-64"),  # others never store past the cache
]


def shares(each):
    return {threads: min(each * threads, 1.25) for threads in (1, 2, 3, 8)}


@pytest.mark.parametrize(
    ("machine", "origin", "stream", "fill"),
    [
        (ZEN_4, "measured: znver4", {1: 0.6, 2: 1.2, 3: 1.8, 8: 4.8}, {2: 1.1}),
        (ZEN_5, "measured: znver5", {1: 0.6, 2: 1.2, 3: 1.25, 9: 2.5}, {1: 0.7, 2: 1.25, 8: 1.25}),
        (ZEN_3, "measured: znver3", shares(0.417), shares(0.328)),
        *((machine, "reasoned: ", shares(0.5), shares(0.4)) for machine in UNKNOWN),
    ],
)
def test_stores_pass_the_cache_beyond_a_share_of_the_l3(library, machine, origin, stream, fill):
    """By the number of threads, of which only the two of a Zen 4 share a cache."""
    assert pretend(library, machine).origin.startswith(origin)
    for threads, share in stream.items():
        size = round(32 * MB * share)
        assert [library.streams(size + more, 0, 0, threads) for more in (-100, 100)] == [0, 1]
    for threads, share in fill.items():
        size = round(32 * MB * share)
        assert [fills(library, size + more, threads) for more in (-100, 100)] == [0, 1]


@pytest.mark.parametrize(("machine", "grain"), [(ZEN_4, 256 * KB), (ZEN_5, 384 * KB)])
def test_machine_that_was_measured_has_decisions_of_its_own(library, machine, grain):
    found = pretend(library, machine).decisions
    assert [found[key] for key in ("skip", "backwards", "bytes_per_thread")] == [1, 0, grain]


@pytest.mark.parametrize(
    ("machine", "origin"),
    [
        ((b"GenuineIntel", 6, 0x8F, 2 * MB, 105 * MB, 96), "reasoned: mesh"),
        ((b"GenuineIntel", 6, 0x97, 1280 * KB, 30 * MB, 24), "reasoned: intel"),
        ((b"AuthenticAMD", 26, 0x24, MB, 32 * MB, 16), "reasoned: amd"),
        ((b"HygonGenuine", 24, 1, 512 * KB, 8 * MB, 8), f"reasoned: {OTHER}"),
        ((b"", 0, 0, 0, 0, 0), f"reasoned: {OTHER}"),
    ],
)
def test_machine_that_was_not_measured_says_so(library, machine, origin):
    assert pretend(library, machine).origin == origin


@pytest.mark.parametrize("size", [0, 3 * KB, -1, 1 << 62])
def test_impossible_size_of_a_cache_is_ignored(library, size):
    found = pretend(library, (b"AuthenticAMD", 25, 17, size, size, 0))
    machine = found.machine
    assert (machine["l2"], machine["l3"], machine["threads_per_l3"]) == (MB, 32 * MB, 1)
    assert all(0 <= value <= NEVER for value in found.decisions.values())


def test_largest_and_smallest_caches_that_are_taken_as_they_are(library):
    def caches(l2, l3):
        machine = pretend(library, (b"AuthenticAMD", 25, 17, l2, l3, 1)).machine
        return machine["l2"], machine["l3"]

    for l2, l3 in ((64 * KB, MB), (256 * MB, 2048 * MB)):
        assert caches(l2, l3) == (l2, l3)
    for l2, l3 in ((64 * KB - 1, MB - 1), (256 * MB + 1, 2048 * MB + 1)):
        assert caches(l2, l3) == (MB, 32 * MB)


def test_large_cache_of_a_whole_package_is_taken_as_it_is(library):
    assert pretend(library, (b"AuthenticAMD", 25, 17, MB, 320 * MB, 2)).machine["l3"] == 320 * MB


def test_sums_of_thresholds_do_not_wrap_around(library, monkeypatch):
    largest = ",".join(f"{key}={NEVER}" for key in DECISIONS[:5])
    monkeypatch.setenv("TE_SELECT_PROFILE", largest)
    pretend(library, (b"AuthenticAMD", 25, 17, MB, 32 * MB, 1))
    assert not library.streams((1 << 63) - 1, 0, 0, 2**31 - 1)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (1023, "1023 bytes"),
        (KB, "1 KB"),
        (MB - KB, "1.02e+03 KB"),
        (MB, "1 MB"),
        (5 << 29, "2.5 GB"),
    ],
)
def test_bytes_are_said_in_the_largest_whole_unit(size, said):
    past = {"stores_past_the_cache": size, "fills_past_the_cache": NEVER}
    profile = Profile({"threads": 1}, "", dict.fromkeys(DECISIONS, 0), "", "", False, past)
    assert profile.in_effect["stores_past_the_cache"] == f"from {said} moved on"
    assert profile.in_effect["fills_past_the_cache"] == "never"


def test_file_of_the_user_replaces_what_it_names(library, file):
    before = pretend(library, EMERALD_RAPIDS)
    assert before.file == str(file)
    lines = "skip = 0\r\nstream_per_l3=77\nfill_per_l3 =78\nfill_per_thread= \t79\n"
    file.write_text(f"# measured\n\n  {lines}")
    after = pretend(library, EMERALD_RAPIDS)
    assert after.origin == "measured by the user"
    assert after.decisions == before.decisions | {
        "skip": 0,
        "stream_per_l3": 77,
        "fill_per_l3": 78,
        "fill_per_thread": 79,
    }
    assert pretend(library, ZEN_4).origin == "measured: znver4"  # it has another file


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is empty"),
        ("# nothing\n", "it is empty"),
        ("skip = 1\nstream", "line 2 has no '='"),
        ("skip = x\n", "line 1 has a value that is no whole number"),
        ("skip = -1\n", "line 1 has a value that is no whole number"),
        ("skip = 1 2\n", "line 1 has a value that is no whole number"),
        ("skip = 3\n", "line 1 has a value that is out of range"),
        ("bytes_per_thread = 0\n", "line 1 has a value that is out of range"),
        (f"skip = {10**40}\n", "line 1 has a value that is out of range"),
        ("skipp = 1\n", "line 1 has a key that is not known"),
        ("\0" * 4000, "line 1 has a byte of 0"),
        ("skip = 1\nstream_per_thread = 10\0\0\0\n", "line 2 has a byte of 0"),
        ("skip = 1\n# half a comment\0\n", "line 2 has a byte of 0"),
        ("x" * 400 + "=1\nskip = 1\n", "line 1 has a key that is not known"),
        ("x" * 70_000, "it is no regular file of at most 64 KB"),
    ],
    ids=range(15),
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


def test_pipe_or_endless_file_in_its_place_is_left_out(library, file):
    os.mkfifo(file)
    assert "it is no regular file" in pretend(library, EMERALD_RAPIDS).problem
    file.unlink()
    file.symlink_to("/dev/zero")
    assert "it is no regular file" in pretend(library, EMERALD_RAPIDS).problem


def test_folder_in_the_place_of_the_file_is_passed_over(library, file):
    file.mkdir()
    assert pretend(library, EMERALD_RAPIDS).origin == "reasoned: mesh"


@pytest.mark.parametrize("base", ["", "relative", "x" * 5000])
def test_without_a_home_there_is_no_file(library, monkeypatch, base):
    monkeypatch.setenv("XDG_CONFIG_HOME", base)
    monkeypatch.setenv("HOME", f"/{base}" if len(base) > 1000 else base)
    assert pretend(library, EMERALD_RAPIDS).file == ""


@pytest.mark.parametrize("end", "\n\r\x0b\x1c\x85\u2028")
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


@pytest.mark.parametrize(("reads", "past"), [(50, True), (100, True), (101, False), (0, True)])
def test_calls_that_read_little_are_compared_by_their_output(home, monkeypatch, reads, past):
    monkeypatch.setenv("TE_SELECT_PROFILE", f"stream_per_thread=0,stream_per_l3=0,{LATE}{reads}")
    mask = Workload((1, 1 << 15), (64 + reads, 1 << 15), ())  # reads 100.4 to 100.2 %
    kernel = te_select.compile(mask, tuning_logs=False)
    assert kernel.plan()["stores_past_the_cache"] == past


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    shape = (64, 64)
    path = tmp_path_factory.mktemp("artifact") / "library.so"
    return build([Workload(shape, shape, shape)], path)


@pytest.mark.parametrize(
    "text", ["skip", "skip=", "skip=3", "x=1", "skip=1,,x", "skip=1;", "=", "é=1", "x" * 9999]
)
def test_profile_that_is_none_is_refused_by_load(artifact, monkeypatch, home, text):
    monkeypatch.setenv("TE_SELECT_PROFILE", text)
    monkeypatch.setenv("TE_SELECT_PRIVATE_COPY", "1")
    # The bytes differ from those of other tests, so that this library is loaded anew.
    with pytest.raises(te_select.ArgumentError, match=r"^TE_SELECT_PROFILE.*expected a comma list"):
        te_select.load(fresh(artifact))


def test_bad_profile_is_refused_by_a_call_from_c(artifact, tmp_path, monkeypatch, home):
    """It loads the library without te_select.load."""
    monkeypatch.setenv("TE_SELECT_PROFILE", "skip=7")
    copy = tmp_path / "copy.so"
    copy.write_bytes(artifact.read_bytes())
    shape = (64, 64)
    select = tvm_ffi.load_module(str(copy)).get_function(Workload(shape, shape, shape).name)
    out = np.full(shape, 7, "f4")
    zeros = np.zeros(shape, "f4")
    with pytest.raises(ValueError, match="TE_SELECT_PROFILE: 'skip=7' has a value that is out of"):
        select(np.ones(shape, bool), zeros, zeros, out)
    assert (out == 7).all()


def test_kernel_says_what_its_library_decides_here(artifact, monkeypatch, home):
    monkeypatch.setenv("TE_SELECT_PROFILE", "stream_per_thread=0,stream_per_l3=5242880,skip=0")
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "3")
    shown = te_select.load(fresh(artifact)).in_effect
    assert shown["threads"] == "3"
    assert shown["look_at_cond_first"] == "never"
    assert shown["stores_past_the_cache"].startswith("from ")


def fresh(artifact):
    """A library with bytes of its own, because a process loads the same bytes only once."""
    names = [f"v{len(list(artifact.parent.glob('*')))}"]
    shape = (names[0], 64)
    return build([Workload(shape, shape, shape)], artifact.parent / f"{names[0]}.so")


@pytest.mark.parametrize("threads", [1, 4])
def test_library_says_from_where_on_stores_go_past_the_cache(library, monkeypatch, threads):
    sizes = f"stream_per_thread={6 * MB},stream_per_l3=5,fill_per_thread=7,fill_per_l3={NEVER}"
    monkeypatch.setenv("TE_SELECT_PROFILE", sizes)
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", str(threads))
    past = Profile.parse(library.find().decode()).past_the_cache
    first = past["stores_past_the_cache"]
    assert [library.streams(moved, 0, 0, threads) for moved in (first - 1, first)] == [0, 1]
    assert past["fills_past_the_cache"] == NEVER


def test_nothing_is_said_of_it_for_a_library_of_0_2(library):
    """It does not say it itself."""
    lines = library.find().decode().splitlines()
    text = "\n".join(line for line in lines if "s_past_the_cache" not in line)
    whole, old = (Profile.parse(each).in_effect for each in ("\n".join(lines), text))
    assert whole.keys() - old.keys() == {"stores_past_the_cache", "fills_past_the_cache"}


def test_library_of_0_2_has_the_usual_fill_reads(library):
    text = library.find().decode().replace("fill_reads = 50\n", "")
    assert "fill_reads" not in text
    assert Profile.parse(text).decisions["fill_reads"] == 50
