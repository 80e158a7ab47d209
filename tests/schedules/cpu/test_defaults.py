"""The default choices of the CPU schedule, and the sizes at which they change."""

from pytest import mark

from te_select import Workload
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import isa
from te_select.schedules.cpu.config import BY_MACHINE
from te_select.schedules.cpu.defaults import LEAST_PARALLEL_BYTES, default_config

V3 = resolve("x86-64-v3").tvm
N = 1 << 20


def pattern(*shapes, dtype="float32"):
    return access_pattern(Workload(*shapes, dtype, "multidirectional"))


def test_machine_decides_on_stores_of_large_outputs():
    n = 1 << 17  # 512 KB
    for size, stream_from in ((n - 1, 0), (n, BY_MACHINE), ("n", BY_MACHINE)):
        assert default_config(pattern(*[(size,)] * 3), V3).stream_from == stream_from


@mark.parametrize(
    "target, below",
    [("x86-64-v3", 128), ("aarch64", 40), ("riscv64", 0), ("riscv64:rva23", 40)],
)
@mark.parametrize("dtype", ["int8", "float32"])
def test_rows_share_vectors_as_far_as_the_level_says(target, below, dtype):
    width = 4 if dtype == "float32" else 1
    for inner, shared in (((below or 4 * width) // width, False), (below // width - 1, True)):
        if inner > 0:
            rows = pattern((77, 1), (77, inner), (77, inner), dtype=dtype)
            assert default_config(rows, resolve(target).tvm).rows == shared


def test_machine_decides_on_threads_and_looks_if_much_moves():
    n = 20165  # 13 bytes each are 256 KB
    for size, decided in ((n - 1, 0), (n, BY_MACHINE), ("n", BY_MACHINE)):
        config = default_config(pattern(*[(size,)] * 3), V3)
        assert (config.bytes_per_thread, config.skip) == (decided, decided)
        assert config.backwards == BY_MACHINE
    exactly = pattern(*[(LEAST_PARALLEL_BYTES // 4,)] * 3, dtype="uint8")
    assert exactly.bytes_moved() == LEAST_PARALLEL_BYTES
    assert default_config(exactly, V3).bytes_per_thread == BY_MACHINE


@mark.parametrize(
    "shapes, skip",
    [
        (((N,), (N,), (N,)), BY_MACHINE),
        (((N,), (N,), ()), BY_MACHINE),
        (((N,), (), (N,)), BY_MACHINE),
        (((N,), (), ()), 0),
        (((), (N,), (N,)), 0),
    ],
)
def test_cond_that_moves_with_a_side_is_looked_at_first(shapes, skip):
    assert default_config(pattern(*shapes), V3).skip == skip


@mark.parametrize(
    "target, vector_bytes",
    [("x86-64", 16), ("x86-64-v2", 16), ("x86-64-v3", 64), ("x86-64-v4", 64)],
)
def test_vectors_are_as_wide_as_registers_or_lines(target, vector_bytes):
    tvm_target = resolve(target).tvm
    assert isa.level_of(tvm_target).name == target
    config = default_config(pattern((N,), (N,), (N,)), tvm_target)
    assert (config.vector_bytes, config.unroll) == (vector_bytes, 4)


def test_rows_are_the_leaf_if_short_or_past_the_cache():
    def rows(r, c):
        return default_config(pattern((r, 1), (r, c), (r, c)), V3).rows

    assert rows(100, 31) and not rows(100, 32)  # of 128 bytes
    assert rows(1 << 16, 32) and rows(1 << 16, 255) and not rows(1 << 16, 256)  # of 1 KB
    assert rows(9, "c")
