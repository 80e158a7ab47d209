"""Machines are detected from CPUID leaves, laid out as in the manuals of Intel and AMD."""

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


LEAF_OF_CACHES = {"GenuineIntel": 4, "AuthenticAMD": 0x8000001D}
AVX512, AMX = (7, 0, (0, 1 << 16, 0, 0)), (7, 0, (0, 1 << 16, 0, 1 << 24))


@pytest.fixture
def find(built, tmp_path, monkeypatch):
    """Detects a machine with a vendor, a signature of leaf 1, caches, and further leaves."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "2")

    def detect(vendor, signature, caches, *more):
        library = c_half.copied(built, tmp_path)
        library.find.restype = ctypes.c_char_p
        b, d, c = (int.from_bytes(part, "little") for part in NAMES[vendor])
        leaves = [(0, 0, (0x20, b, c, d)), (1, 0, (signature, 0, 0, 0))]
        leaves += [(0x80000000, 0, (0x80000021, 0, 0, 0)), *more]
        leaves += [(LEAF_OF_CACHES[vendor], i, each) for i, each in enumerate(caches)]
        for leaf, index, registers in leaves:
            library.put(ctypes.c_uint32(leaf), index, (ctypes.c_uint32 * 4)(*registers))
        return Profile.parse(library.find().decode())

    return detect


@pytest.mark.parametrize(
    ("vendor", "signature", "family_and_model"),
    [
        ("GenuineIntel", 0x000C06F2, (6, 0xCF)),  # Emerald Rapids
        ("GenuineIntel", 0x00000F43, (15, 0x04)),  # Pentium 4
        ("AuthenticAMD", 0x00A10F11, (25, 0x11)),  # Genoa
    ],
)
def test_family_model_and_caches_are_read(find, vendor, signature, family_and_model):
    found = find(vendor, signature, CACHES).machine
    assert (found["vendor"], found["family"], found["model"]) == (vendor, *family_and_model)
    assert (found["l2"], found["l3"], found["threads_per_l3"]) == (2 * MB, 30 * MB, 24)


def intel(model, l2_kb, l3_mb, *more):
    """A machine of Intel with a model's number, caches and features."""
    return "GenuineIntel", 0x600 | (model & 15) << 4 | (model >> 4) << 16, l2_kb, l3_mb, *more


def amd(family, model, l2_kb, l3_mb):
    signature = 0xF00 | (family - 15) << 20 | (model & 15) << 4 | (model >> 4) << 16
    return "AuthenticAMD", signature, l2_kb, l3_mb


FALSE = ", though its number is of no known server"


@pytest.mark.parametrize(
    ("machine", "origin", "least", "most"),
    [
        # The bounds are MB moved on two threads: measured, or for others by their caches.
        (intel(0xCF, 2048, 300, AVX512), "reasoned: mesh", 4.2, 6.0),  # Emerald Rapids
        (intel(167, 2048, 480, AMX), "reasoned: mesh" + FALSE, 4.2, 6.0),  # the Xeon that hides
        (intel(0x55, 1024, 25, AVX512), "reasoned: mesh", 2, 3),  # Skylake-X
        (intel(0x6A, 1280, 24, AVX512), "reasoned: mesh", 2.5, 4),  # Ice Lake-SP
        (intel(0x7E, 1280, 54, AVX512), "reasoned: mesh" + FALSE, 2.5, 4),
        (intel(0x8F, 2048, 60, AMX), "reasoned: mesh", 4, 6),  # Sapphire Rapids
        (intel(0x97, 2048, 30, AVX512), "reasoned: mesh" + FALSE, 4, 6),
        (intel(0x0F, 2048, 0, AMX), "reasoned: mesh" + FALSE, 4, 6),
        (intel(0xAF, 4096, 108), "reasoned: mesh", 8, 12),  # Sierra Forest
        (intel(0x97, 1280, 30), "reasoned: intel", 20, 40),  # Alder Lake
        (intel(0x8D, 1280, 24, AVX512), "reasoned: intel", 15, 30),  # Tiger Lake
        (intel(167, 512, 16, AVX512), "reasoned: intel", 10, 20),  # Rocket Lake
        (intel(0x8F, 512, 16), "reasoned: intel", 10, 20),  # its number is a server's
        (amd(25, 0x01, 512, 32), "measured: znver3", 24, 54),
        (amd(25, 0x11, 1024, 32), "measured: znver4", 27, 40),
        (amd(26, 0x11, 1024, 32), "measured: znver5", 34, 41),  # Zen 5c
        (amd(26, 0x24, 1024, 8), "reasoned: amd", 5, 10),
        (amd(23, 0x31, 512, 16), "reasoned: amd", 10, 20),  # Zen 2: Rome under KVM
        (amd(27, 0x01, 1024, 2048), "reasoned: amd", 64, 160),  # that of a package
    ],
)
def test_rule_follows_the_traits_of_a_machine(find, machine, origin, least, most):
    vendor, signature, l2_kb, l3_mb, *more = machine
    caches = [cache(UNIFIED, 2, 2, 1, 1, l2_kb << 4)]
    if l3_mb:
        caches.append(cache(UNIFIED, 3, 64, 1, 1, l3_mb << 14))
    found = find(vendor, signature, caches, *more)
    decisions = found.decisions
    first = 2 * decisions["stream_per_thread"] + decisions["stream_per_l3"]
    assert found.origin == origin
    assert least * MB <= first <= most * MB
    assert decisions["backwards"] == (vendor == "GenuineIntel")
