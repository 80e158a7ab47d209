"""The CUDA schedule, read from the IR that it makes, and its lowering."""

from dataclasses import replace

import tvm_ffi
from pytest import mark, raises
from tvm import tirx

from te_select import SelectError, Workload
from te_select.operator.access import access_pattern
from te_select.schedules.cuda import schedule as cuda
from te_select.schedules.cuda import span as spans
from tests.support import flat_and_scalar
from tests.support.cuda_emulation import lowered, scheduled

BIG = 1 << 25


def loops_of(func):
    loops = []
    tvm_ffi.structural_walk(func.body, (tirx.For, loops.append), order="pre")
    return loops


def tag(loop):
    return None if loop.thread_binding is None else loop.thread_binding.thread_tag


def test_grid_is_never_larger_than_cuda_takes():
    tiles = 1 << 40
    huge = flat_and_scalar(tiles, "float64")
    assert int(lowered(huge, threads=128, vectors=1).blocks) == cuda.LARGEST_GRID == 2147483647
    assert str(cuda.LARGEST_GRID) in lowered(flat_and_scalar("n")).blocks


@mark.parametrize(
    "else_, wrong",
    [
        *(((64, 1), letter) for letter in "sif"),
        *(((8,), letter) for letter in "sof"),
        *(((), letter) for letter in "if"),
        *(((64, 8), letter) for letter in "os"),
    ],
)
def test_span_whose_operand_moves_in_another_way_is_refused(else_, wrong, monkeypatch):
    right = cuda.span_of
    monkeypatch.setattr(cuda, "span_of", lambda *given: replace(right(*given), else_=wrong))
    with raises(SelectError, match="has no span"):
        lowered(Workload((64, 1), (64, 8), else_))


def pattern_of(*shapes):
    return access_pattern(Workload(*shapes, auto_broadcast="multidirectional"))


def default_of(*shapes):
    return cuda.default_config(pattern_of(*shapes), None)


def test_small_work_has_fewer_vectors_and_skips_no_side():
    small, large = (default_of((n,), (n,), (n,)) for n in (1000, BIG))
    assert (small.vectors, small.skip, large.skip) == (1, False, True) and large.vectors > 1
    full = [default_of(*[(n,)] * 3).vectors for n in (2162687, 2162688, 4325376)]
    assert full == [1, 2, 4]  # 1056 blocks of 16 KB have two
    assert cuda.default_config(access_pattern(flat_and_scalar(BIG, "uint8")), None).vectors == 2
    assert default_of(("n",), ("n",), ("n",)).skip and default_of((9, 1), (9, 9), (9, 9)).skip


def test_large_output_leaves_caches_to_broadcast_operands():
    rows = 8192  # of 4 KB
    for n, stream in ((rows - 1, False), (rows, True), ("n", False)):
        assert default_of((1, 1024), (n, 1024), ()).stream == stream
        assert not default_of((n, 1024), (n, 1024), ()).stream


FULL = cuda.STREAM_FROM_BYTES // 4 // 1024, 1024
COLUMN = FULL[0], 1


@mark.parametrize(
    "shapes, dtype, moves",
    [
        *((shapes, "float32", moves) for shapes, moves in (
            ((FULL, FULL, FULL), "fff"), (((), FULL, ()), "sfs"), (((), (), FULL), "ssf"),
            ((COLUMN, FULL, FULL), "off"), (((1, 1024), FULL, FULL), "iff"),
            ((FULL, COLUMN, FULL), "fof"), ((FULL, FULL, (1, 1024)), "ffi"),
        )),
        (((), FULL, ()), "complex128", "sfp"),
        (((), (), FULL), "complex128", "spf"),
        (((), FULL, FULL), "complex128", "sff"),
    ],
)  # fmt: skip
def test_out_leaves_the_caches_to_what_is_read_again(shapes, dtype, moves):
    """A number of up to 8 bytes is in a register. A longer one is read as a pair."""
    pattern = access_pattern(Workload(*shapes, dtype, "multidirectional"))
    found = spans.moves(pattern)
    assert "".join(found) == moves
    assert cuda.default_config(pattern, None).stream == bool(set(moves) & set("iop"))


def test_grid_is_capped_where_it_has_more_tiles_than_that():
    tile = 256 * 4
    for tiles, strided in ((3, False), (4, True)):
        workload = flat_and_scalar(tiles * tile)
        loops = loops_of(scheduled(workload, vectors=1, max_blocks=3))
        assert [tag(loop) for loop in loops[:2]] == ["blockIdx.x", "threadIdx.x"]
        assert (int(loops[0].extent), len(loops)) == (3, 4 + strided)
        kernel = lowered(workload, vectors=1, max_blocks=3)
        assert kernel.blocks == "3"
        assert f"STRIDED = {str(strided).lower()};" in kernel.kernel


def test_cap_that_is_not_reached_makes_no_difference():
    pattern = access_pattern(flat_and_scalar(9000))
    config = cuda.default_config(pattern, None)
    effects = [cuda.dedup_key(pattern, replace(config, max_blocks=most)) for most in (0, 9, 8)]
    assert effects[0] == effects[1] != effects[2]


def test_reading_less_is_tried_if_cond_moves_innermost():
    def skips(*shapes):
        return cuda.space(pattern_of(*shapes), None)["skip"]

    assert skips((1, 64), (9, 64), ()) == skips((9, 64), (9, 64), (9, 64)) == [False, True]
    assert skips((9, 1), (9, 64), (9, 64)) == skips((), (), ()) == [True]


def test_record_of_any_size_serves_a_size_with_a_name():
    small, large, named = (pattern_of((n,), (n,), (n,)) for n in (1000, BIG, "n"))
    assert cuda.may_share_record(named, small, None) and cuda.may_share_record(named, large, None)
    assert cuda.may_share_record(large, large, None)
    assert not cuda.may_share_record(large, small, None)


def test_names_that_are_no_identifiers_in_c_are_not_used():
    function = lowered(Workload(["while", 1], ["while", 3], [3]))
    assert "while" not in function.kernel and "sizes[0]" in function.blocks


@mark.parametrize("shape", [(0,), (4, 0)])
def test_nothing_to_do_has_no_blocks(shape):
    function = lowered(Workload(shape, shape, ()))
    assert function.blocks == "0"
    assert "__global__" in function.kernel
