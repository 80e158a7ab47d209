"""How many threads a call may use: by the user's number, the affinity and a container's quota."""

import os

from pytest import fixture, mark

from tests.support import c_half, open_files

ALL = len(os.sched_getaffinity(0))


@fixture(scope="module")
def places(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processors")
    return folder, folder / "groups", folder / "cgroup"


@fixture(scope="module")
def built(places):
    folder, groups, of_process = places
    options = (f'-DTE_SELECT_CGROUPS="{groups}"', f'-DTE_SELECT_CGROUPS_OF_PROCESS="{of_process}"')
    return c_half.build(folder, "processors_test.c", ["cpu/sysfs.c"], *options)


@fixture
def quota(built, places, tmp_path):
    """Writes files of control groups, and returns the number of processors that is read."""
    _, groups, of_process = places
    library = c_half.copied(built)

    def read(process, files):
        for path in sorted(groups.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        of_process.write_text(process)
        for name, text in files.items():
            path = groups / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return library.quota()

    return read


@mark.parametrize(
    "quota_and_period, processors",
    [
        ("200000 100000", 2),
        ("110000 100000", 2),  # rounded up
        ("40000 100000", 1),
        ("max 100000", 0),
        ("0 100000", 0),
        ("100000 0", 0),
        ("9999999999999999 1", 2**31 - 1),
        ("nonsense", 0),
    ],
)
def test_quota_of_version_2(quota, quota_and_period, processors):
    files = {"app.slice/cpu.max": f"{quota_and_period}\n"}
    assert quota("0::/app.slice\n", files) == processors


def test_least_quota_of_a_group_and_those_around_it_counts(quota):
    files = {
        "cpu.max": "800000 100000",
        "a/cpu.max": "300000 100000",
        "a/b/cpu.max": "max 100000",
        "a/b/c/cpu.max": "500000 100000",
    }
    assert quota("0::/a/b/c\n", files) == 3
    assert quota("0::/a/elsewhere\n", files) == 3
    assert quota("0::/../../host/group\n", files) == 8  # of a container, whose root it is
    assert quota("0::/a\n", {"cpu.max": "200000 100000", "a/cpu.max": "300000 100000"}) == 2


def test_quota_of_version_1_is_that_of_the_group_of_cpu(quota):
    files = {
        "cpu/docker/x/cpu.cfs_quota_us": "250000\n",
        "cpu/docker/x/cpu.cfs_period_us": "100000\n",
        "cpu/cpu.cfs_quota_us": "-1\n",
        "cpu/cpu.cfs_period_us": "100000\n",
        "cpu/y/cpu.cfs_quota_us": "100000\n",
        "cpu/y/cpu.cfs_period_us": "100000\n",
    }
    lines = "12:memory:/docker/x\n3:cpu,cpuacct:/docker/x\n2:cpuset:/y\n0::/\n"
    assert quota(lines, files) == 3


def test_least_quota_of_both_versions_counts(quota):
    files = {
        "cpu/a/cpu.cfs_quota_us": "300000\n",
        "cpu/a/cpu.cfs_period_us": "100000\n",
        "a/cpu.max": "200000 100000\n",
    }
    for lines in ("3:cpu:/a\n0::/a\n", "0::/a\n3:cpu:/a\n"):
        assert quota(lines, files) == 2


def test_files_of_groups_are_closed(quota):
    files = {"cpu.max": "200000 100000", "a/cpu.max": "max 100000"}
    quota("0::/a\n", files)
    before = open_files()
    for _ in range(3):
        assert quota("0::/a\n", files) == 2
    assert open_files() == before


@mark.parametrize(
    "process", ["", "\n", "::::\n", "0\n", "0:\n", "0::" + "/x" * 3000 + "\n", "\0\0\n"]
)
def test_damaged_lists_of_groups_are_ignored(quota, process):
    assert quota(process, {}) == 0


@mark.parametrize(
    "text, threads",
    [
        ("6", 6),
        ("6,2", 6),
        ("0" * 30 + "7", 7),
        ("0" * 31 + "7", 0),
        ("9" * 40, 0),
        *((text, 0) for text in (",2", "", "x", "0", "-1", "9" * 40 + "x")),
    ],
)
def test_wish_for_openmp_is_a_number_of_31_digits_at_most(
    built, tmp_path, monkeypatch, text, threads
):
    monkeypatch.delenv("TE_SELECT_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert c_half.copied(built).wish() == threads


@mark.parametrize(
    "own, openmp, period, threads",
    [
        ("7", "5", 100_000, 7),
        ("", "5", 100_000, 5),
        ("", "", 100_000, 1),
        ("", "", 1, ALL),
        ("257", "", 1, 256),
    ],
)
def test_wish_comes_before_quota_and_affinity(
    built, places, monkeypatch, own, openmp, period, threads
):
    _, groups, of_process = places
    groups.mkdir(exist_ok=True)
    (groups / "cpu.max").write_text(f"100000 {period}")
    of_process.write_text("0::/\n")
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", own)
    monkeypatch.setenv("OMP_NUM_THREADS", openmp)
    library = c_half.copied(built)
    assert (library.threads(), library.processors()) == (threads, ALL)
