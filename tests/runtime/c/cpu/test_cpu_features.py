"""A feature of a CPU is there if the system saves the registers that it uses."""

from ctypes import c_uint32, create_string_buffer
from pathlib import Path
from re import findall, search

from pytest import importorskip, mark

from tests.support import ROOT, c_half
from tests.support.machines import on_x86_64

OSXSAVE, SSE, AVX, MASKS, LOW, HIGH = 1 << 27, 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 7  # of XCR0
YMM = SSE | AVX
ZMM = YMM | MASKS | LOW | HIGH
OF_YMM = "avx avx2 fma f16c xop fma4"
ALL = f"{OF_YMM} avx512f avx512dq avx512cd avx512bw avx512vl avx512vbmi avx512_vbmi2 avx512_bitalg"
ALL += " avx512_vpopcntdq avx512_fp16"
PLAIN = "pni ssse3 sse4_1 sse4_2 movbe popcnt bmi1 bmi2 gfni abm sse4a tbm"
BITS = "28 5 12 29 11 16 16 17 28 30 31 1 6 12 14 23 0 9 19 20 22 23 3 8 8 5 6 21"


@on_x86_64
@mark.parametrize(
    "saved, has",
    [
        (SSE, ""),
        (YMM, OF_YMM),
        *((ZMM & ~bit, OF_YMM) for bit in (MASKS, LOW, HIGH)),
        (ZMM & ~AVX, ""),
        (ZMM, ALL),
    ],
)
def test_vectors_are_used_if_the_system_saves_them(saved, has):
    half = c_half.copied(c_half.built("cpu_features_test.c"))
    c_uint32.in_dll(half, "saved").value = saved
    found = [name for name in ALL.split() if half.te_select_cpu_has(name.encode())]
    assert found == has.split()
    text = create_string_buffer(1024)
    half.te_select_list_cpu_features(text)
    listed = text.value.decode().split()
    assert [name for name in ALL.split() if name in listed] == found and "sse4_2" in listed
    assert half.te_select_cpu_has(b"sse4_2") and not half.te_select_cpu_has(b"sse")
    bits = c_uint32.in_dll(half, "bits")
    for name, bit in zip(f"{ALL} {PLAIN}".split(), map(int, BITS.split()), strict=True):
        bits.value = ~(1 << bit)
        assert not half.te_select_cpu_has(name.encode())
    bits.value = ~OSXSAVE  # nothing says what is saved
    assert not half.te_select_cpu_has(b"avx2")


def test_every_feature_of_x86_64_has_its_bit_here():
    source = (ROOT / "te_select/runtime/c/cpu/cpu_features.c").read_text()
    assert {*findall(r'{"(\w+)", \w+, E.X', source)} == {*ALL.split(), *PLAIN.split()}


def test_bits_of_aarch64_are_those_of_linux():
    zig = Path(importorskip("ziglang").__file__).parent
    header = (zig / "lib/libc/include/aarch64-linux-any/asm/hwcap.h").read_text()
    source = (ROOT / "te_select/runtime/c/cpu/cpu_features.c").read_text()
    rows = findall(r'{"(\w+)", (FIRST|SECOND), (\d+)}', source)
    assert len(rows) > 9
    for name, words, bit in rows:
        macro = f"{'HWCAP2' if words == 'SECOND' else 'HWCAP'}_{name.upper()}"
        assert search(rf"define {macro}\s+\(1(UL)? << {bit}\)", header), name
