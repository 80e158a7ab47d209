"""What a library reads about a CPU from files."""

import ctypes
import itertools
import subprocess
from pathlib import Path

import pytest

from te_select.backends.programs import c_compiler

SOURCE = Path(__file__).parents[4] / "te_select/runtime/c/cpu/sysfs.c"
NEOVERSE_N1 = "0x00000000413fd0c1\n"
CACHES = (
    ("1", "Data", "64K", "0"),
    ("1", "Instruction", "64K", "0"),
    ("2", "Unified", "1024K", "0"),
)
_numbers = itertools.count()


class Machine(ctypes.Structure):
    """The first fields of te_select_machine."""

    _fields_ = (
        ("vendor", ctypes.c_char * 16),
        ("family", ctypes.c_int32),
        ("model", ctypes.c_int32),
        ("has_avx512", ctypes.c_int32),
        ("has_amx", ctypes.c_int32),
        ("l2", ctypes.c_int64),
        ("l3", ctypes.c_int64),
        ("threads_per_l3", ctypes.c_int32),
        ("rest", ctypes.c_int64 * 16),
    )


@pytest.fixture
def detect(tmp_path):
    """Writes files, and detects the machine that they describe."""

    def detected(caches, midr=None):
        root = tmp_path / f"cpu{next(_numbers)}"
        for i, values in enumerate(caches):
            folder = root / "cache" / f"index{i}"
            folder.mkdir(parents=True)
            names = ("level", "type", "size", "shared_cpu_list")
            for name, value in zip(names, values, strict=False):
                (folder / name).write_text(f"{value}\n")
        if midr is not None:
            (root / "regs/identification").mkdir(parents=True)
            (root / "regs/identification/midr_el1").write_text(midr)
        library = root.with_suffix(".so")
        words = [*c_compiler(), "-shared", "-fPIC", f'-DTE_SELECT_CPU0="{root}"', str(SOURCE)]
        subprocess.run([*words, "-o", str(library)], check=True)
        machine = Machine()
        ctypes.CDLL(str(library)).te_select_detect_by_sysfs(ctypes.byref(machine))
        return machine

    return detected


def test_caches_are_told_apart_by_level_not_by_number(detect):
    found = detect([*CACHES, ("3", "Unified", "32M", "0-63")], NEOVERSE_N1)
    assert (found.l2, found.l3, found.threads_per_l3) == (1 << 20, 32 << 20, 64)
    assert (found.vendor, found.model) == (b"arm-41", 0xD0C)
    assert detect([CACHES[2], CACHES[0]]).l2 == 1 << 20


@pytest.mark.parametrize(
    ("shared", "threads"),
    [("0", 1), ("0-3,8", 5), ("0-1,4-5", 4), ("", 0), ("x", 0), ("5-2", 0), ("0-99999999999", 0)],
)
def test_threads_that_share_a_cache_are_counted(detect, shared, threads):
    assert detect([("3", "Unified", "8192K", shared)]).threads_per_l3 == threads


@pytest.mark.parametrize("size", ["", "x", "-1K", "0", "99999999999999999999K"])
def test_cache_without_a_valid_size_is_ignored(detect, size):
    found = detect([("2", "Unified", size, "0"), ("3", "Unified", "8M", "0")])
    assert (found.l2, found.l3) == (0, 8 << 20)
