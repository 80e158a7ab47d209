"""What a library reads about CPUs from files."""

import dataclasses
from ctypes import CDLL, Structure, byref, c_char, c_int, c_int32, c_int64
from pathlib import Path

from pytest import fixture, mark

from tests.support import c_half

NEOVERSE_N1 = "0x00000000413fd0c1\n"
BIG, LITTLE = "0x00000000410fd850", "0x00000000410fd870"  # Cortex-X925, Cortex-A725
CACHES = (
    ("1", "Data", "64K", "0"),
    ("1", "Instruction", "32K", "0"),
    ("2", "Unified", "1024K", "0"),
)


class Machine(Structure):
    """The first fields of te_select_machine."""

    _fields_ = (
        ("vendor", c_char * 16),
        *((name, c_int32) for name in ("family", "model", "has_avx512", "has_amx")),
        *((name, c_int64) for name in ("l1", "l2", "l3")),
        ("threads_per_l3", c_int32),
        ("rest", c_int64 * 16),
    )


@dataclasses.dataclass
class Files:
    """A folder of files, and the process that reads them."""

    folder: Path
    library: CDLL

    def add(self, cpus, caches, midr=None):
        """Write what each of the CPUs has."""
        for cpu in cpus:
            root = self.folder / f"cpu{cpu}"
            for i, values in enumerate(caches):
                folder = root / "cache" / f"index{i}"
                folder.mkdir(parents=True)
                names = ("level", "type", "size", "shared_cpu_list")
                for name, value in zip(names, values, strict=False):
                    (folder / name).write_text(f"{value}\n")
            if midr is not None:
                (root / "regs/identification").mkdir(parents=True)
                (root / "regs/identification/midr_el1").write_text(midr)

    def read(self, *allowed):
        """What a process reads that may use some CPUs; without one, it does not know of any."""
        bits = sum(1 << cpu for cpu in allowed)
        c_int64.in_dll(self.library, "allowed").value = bits
        machine = Machine()
        self.library.te_select_detect_by_sysfs(byref(machine))
        return machine

    def opened(self):
        """How many files were opened since the last time."""
        count = c_int.in_dll(self.library, "opened")
        before, count.value = count.value, 0
        return before


@fixture
def files(tmp_path):
    built = c_half.build(tmp_path, "sysfs_test.c", [], f'-DTE_SELECT_CPUS="{tmp_path}"')
    return Files(tmp_path, CDLL(str(built)))


@fixture
def detect(files):
    """Writes files of one CPU, and detects the machine that they describe."""

    def detected(caches, midr=None):
        files.add([0], caches, midr)
        return files.read(0)

    return detected


def test_caches_are_told_apart_by_level_not_by_number(detect):
    found = detect([*CACHES, ("3", "Unified", "1G", "0-63")], NEOVERSE_N1)
    assert (found.l1, found.l2, found.l3, found.threads_per_l3) == (64 << 10, 1 << 20, 1 << 30, 64)
    assert (found.vendor, found.family, found.model) == (b"arm-41", 15, 0xD0C)


def test_order_of_the_caches_does_not_matter(detect):
    assert detect([CACHES[2], CACHES[0]]).l2 == 1 << 20


@mark.parametrize(
    "shared, threads",
    [("0", 1), ("0-3,8", 5), ("0-1,4-5", 4), ("", 0), ("x", 0), ("5-2", 0), ("0-99999999999", 0)],
)
def test_threads_that_share_a_cache_are_counted(detect, shared, threads):
    assert detect([("3", "Unified", "8192K", shared)]).threads_per_l3 == threads


@mark.parametrize("size", ["", "x", "-1K", "0", "1073741825G"])
def test_cache_without_a_valid_size_is_ignored(detect, size):
    found = detect([("2", "Unified", size, "0"), ("3", "Unified", "8M", "0")])
    assert (found.l2, found.l3) == (0, 8 << 20)


def test_kind_of_core_with_the_largest_caches_counts(files):
    """Clusters of small and large cores, each with an L3 of its own."""
    for first, size in ((0, "8M"), (10, "16M"), (20, "4M")):
        l3 = ("3", "Unified", size, f"{first}-{first + 9}")
        files.add(range(first, first + 5), [("2", "Unified", "512K", "0"), l3], LITTLE)
        files.add(range(first + 5, first + 10), [("2", "Unified", "2048K", "0"), l3], BIG)
    found = files.read(*range(30))
    assert (found.l2, found.l3, found.threads_per_l3) == (2 << 20, 16 << 20, 10)
    assert found.model == 0xD85
    found = files.read(1, 2, 6)  # the CPUs that this process may use
    assert (found.l2, found.l3, found.model) == (2 << 20, 8 << 20, 0xD85)
    found = files.read(12, 27)
    assert (found.l2, found.l3, found.model) == (512 << 10, 16 << 20, 0xD87)
    assert files.read().model == 0xD87  # of the first CPU


def test_caches_of_a_kind_are_read_once(files):
    files.add(range(40), [*CACHES, ("3", "Unified", "32M", "0-39")], NEOVERSE_N1)
    assert files.read(0).l3 == 32 << 20
    once = files.opened()
    files.read(*range(40))
    assert files.opened() == once + 39  # the name of each


def test_cores_without_names_or_a_shared_cache_are_of_one_kind(files):
    files.add(range(40), CACHES)
    assert files.read(*range(40)).l2 == 1 << 20
    assert files.opened() < 100
