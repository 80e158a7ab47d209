"""Machines are detected from CPUID leaves, laid out as in the manuals of Intel and AMD."""

from __future__ import annotations

import ctypes
import platform

import pytest

from te_select.runtime.call.cpu.profile import Profile
from tests.support import c_half

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="others have no CPUID")
MB = 1 << 20
DATA, INSTRUCTIONS, UNIFIED = 1, 2, 3


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine")
    return c_half.build(
        folder, "cpu_model_test.c", ["cpu/profile.c", "cpu/processors.c", "cpu/sysfs.c"]
    )


def cache(kind, level, sharing, ways, partitions, sets):
    """The registers that describe a cache with lines of 64 bytes."""
    a = kind | level << 5 | (sharing - 1) << 14
    return a, (ways - 1) << 22 | (partitions - 1) << 12 | 63, sets - 1, 0


CACHES = [
    cache(DATA, 1, 2, 12, 1, 64),
    cache(INSTRUCTIONS, 1, 2, 8, 1, 64),
    cache(UNIFIED, 2, 2, 16, 1, 2048),
    cache(UNIFIED, 3, 24, 15, 2, 16384),
    cache(
        INSTRUCTIONS, 2, 2, 4, 1, 4096
    ),  # an instruction cache does not count as the second level
]
NAMES = {"GenuineIntel": (b"Genu", b"ineI", b"ntel"), "AuthenticAMD": (b"Auth", b"enti", b"cAMD")}


@pytest.mark.parametrize(
    ("vendor", "leaf_of_caches", "signature", "family_and_model"),
    [
        ("GenuineIntel", 4, 0x000C06F2, (6, 0xCF)),  # Emerald Rapids
        ("GenuineIntel", 4, 0x00000F43, (15, 0x04)),  # Pentium 4
        ("AuthenticAMD", 0x8000001D, 0x00A10F11, (25, 0x11)),  # Genoa
    ],
)
def test_family_model_and_caches_are_read(
    built, tmp_path, monkeypatch, vendor, leaf_of_caches, signature, family_and_model
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    library = c_half.copied(built, tmp_path)
    library.find.restype = ctypes.c_char_p
    b, d, c = (int.from_bytes(part, "little") for part in NAMES[vendor])
    leaves = {(0, 0): (4, b, c, d), (1, 0): (signature, 0, 0, 0)}
    leaves |= {(0x80000000, 0): (0x80000021, 0, 0, 0)}
    leaves |= {(leaf_of_caches, i): registers for i, registers in enumerate(CACHES)}
    for (leaf, index), registers in leaves.items():
        library.put(ctypes.c_uint32(leaf), index, (ctypes.c_uint32 * 4)(*registers))
    found = Profile.parse(library.find().decode()).machine
    assert (found["vendor"], found["family"], found["model"]) == (vendor, *family_and_model)
    assert (found["l2"], found["l3"], found["threads_per_l3"]) == (2 * MB, 30 * MB, 24)


def test_machine_without_leaves_of_caches_has_plausible_ones(built, tmp_path, monkeypatch):
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    library = c_half.copied(built, tmp_path)
    library.find.restype = ctypes.c_char_p
    found = Profile.parse(library.find().decode()).machine
    assert (found["l2"], found["l3"], found["threads_per_l3"]) == (MB, 32 * MB, 1)
