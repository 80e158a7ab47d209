"""A feature of a CPU is there if the system saves the registers that it uses."""

from ctypes import c_uint32, create_string_buffer

import pytest

from tests.support import c_half
from tests.support.machines import on_x86_64

OSXSAVE, SSE, AVX, MASKS, LOW, HIGH = 1 << 27, 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 7  # of XCR0
YMM = SSE | AVX
ZMM = YMM | MASKS | LOW | HIGH
ALL = "avx avx2 fma f16c avx512f avx512bw avx512vbmi avx512_vpopcntdq avx512_fp16"


@on_x86_64
@pytest.mark.parametrize(
    "saved, has",
    [
        (SSE, ""),
        (YMM, "avx avx2 fma f16c"),
        *((ZMM & ~bit, "avx avx2 fma f16c") for bit in (MASKS, LOW, HIGH)),
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
    c_uint32.in_dll(half, "bits").value = ~OSXSAVE  # nothing says what is saved
    assert not half.te_select_cpu_has(b"avx2")
