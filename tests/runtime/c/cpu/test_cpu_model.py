"""Machines are detected from CPUID leaves, laid out as in the manuals of Intel and AMD."""

import platform
from ctypes import c_uint32

from pytest import fixture, mark

from te_select.runtime.call.cpu.profile import Profile
from tests.support import c_half

pytestmark = mark.skipif(platform.machine() != "x86_64", reason="others have no CPUID")
MB = 1 << 20
SOURCES = ("cpu/profile.c", "cpu/processors.c", "cpu/sysfs.c")
DATA, INSTRUCTIONS, UNIFIED = 1, 2, 3


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
NAMES["HygonGenuine"] = (b"Hygo", b"nGen", b"uine")


LEAF_OF_CACHES = {"GenuineIntel": 4, "AuthenticAMD": 0x8000001D, "HygonGenuine": 0x8000001D}
AVX512, AMX = (7, 0, (0, 1 << 16, 0, 0)), (7, 0, (0, 1 << 16, 0, 1 << 24))


@fixture
def find(tmp_path, monkeypatch):
    """Detects a machine with a vendor, a signature of leaf 1, caches, and further leaves."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "2")

    def detect(vendor, signature, caches, *more):
        library = c_half.copied(c_half.built("cpu_model_test.c", SOURCES), find=">s")
        b, d, c = (int.from_bytes(part, "little") for part in NAMES[vendor])
        leaves = [(0, 0, (7, b, c, d)), (1, 0, (signature, 0, 0, 0))]
        leaves += [(0x80000000, 0, (0x8000001D, 0, 0, 0)), *more]
        leaves += [(LEAF_OF_CACHES[vendor], i, each) for i, each in enumerate(caches)]
        for leaf, index, registers in leaves:
            library.put(c_uint32(leaf), index, (c_uint32 * 4)(*registers))
        return Profile.parse(library.find().decode())

    return detect


@mark.parametrize(
    "vendor, signature, family_and_model",
    [
        ("GenuineIntel", 0x000C06F2, (6, 0xCF)),  # Emerald Rapids
        ("GenuineIntel", 0x00000F43, (15, 0x04)),  # Pentium 4
        ("AuthenticAMD", 0x00A10F11, (25, 0x11)),  # Genoa
        ("HygonGenuine", 0x00900F11, (24, 0x01)),
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


@mark.parametrize(
    "machine, origin",
    [
        (intel(0xCF, 2048, 300, AVX512), "reasoned: mesh"),  # Emerald Rapids
        (intel(0x55, 1024, 25), "reasoned: mesh"),  # a server by its number alone
        *((intel(model, 1024, 25), "reasoned: mesh") for model in b"\x6a\x6c\x8f\xad\xae\xaf\xdd"),
        (intel(0x8F, 1023, 16), "reasoned: intel"),  # but no server has so small an L2
        (intel(0x0F, 512, 0, AMX), "reasoned: mesh" + FALSE),
        (intel(0x97, 512, 64), "reasoned: mesh" + FALSE),
        (intel(0x97, 1280, 63), "reasoned: intel"),  # Alder Lake, but for its L3
        (intel(0x7E, 1024, 25, AVX512), "reasoned: mesh" + FALSE),
        (intel(0x7E, 1280, 31, AVX512), "reasoned: mesh" + FALSE),
        (intel(0x8D, 1280, 30, AVX512), "reasoned: intel"),  # Tiger Lake
        (intel(167, 512, 16, AVX512), "reasoned: intel"),  # Rocket Lake
        (amd(23, 0x31, 512, 16), "reasoned: amd"),  # Zen 2: Rome under KVM
        (amd(25, 0x0F, 512, 32), "measured: znver3"),
        (amd(25, 0x10, 1024, 32), "measured: znver4"),
        (amd(25, 0x20, 1024, 32), "reasoned: amd"),
        (amd(26, 0x1F, 1024, 32), "measured: znver5"),  # Zen 5c
        (amd(26, 0x20, 1024, 32), "reasoned: amd"),
    ],
)
def test_rule_follows_the_traits_of_a_machine(find, machine, origin):
    vendor, signature, l2_kb, l3_mb, *more = machine
    caches = [cache(UNIFIED, 2, 2, 1, 1, l2_kb << 4)]
    if l3_mb:
        caches.append(cache(UNIFIED, 3, 64, 1, 1, l3_mb << 14))
    assert find(vendor, signature, caches, *more).origin == origin
