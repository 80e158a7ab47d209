"""The CUDA schedule, read from the IR that it makes, and its lowering."""

import dataclasses

import pytest
import tvm_ffi
from tvm import s_tir, tirx

from te_select import Workload
from te_select.machines.cuda.lowering import lower, translation_unit
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.schedules.annotations import ANNOTATION
from te_select.schedules.cuda import schedule as cuda
from te_select.schedules.cuda.span import Span

BIG = 1 << 25


def scheduled(workload, **knobs):
    pattern = access_pattern(workload)
    config = dataclasses.replace(cuda.default_config(pattern, None), **knobs).checked(pattern)
    sch = s_tir.Schedule(definition(workload))
    cuda.apply(sch, pattern, None, config)
    return sch.mod["main"]


def loops_of(func):
    loops = []
    tvm_ffi.structural_walk(func.body, (tirx.For, loops.append), order="pre")
    return loops


def tag(loop):
    return None if loop.thread_binding is None else loop.thread_binding.thread_tag


def lowered(workload, symbol="kernel", **knobs):
    func = scheduled(workload, **knobs)
    return lower(func, symbol, workload.dim_names, access_pattern(workload))


def span_symbol(workload):
    (leaf,) = [loop for loop in loops_of(scheduled(workload)) if loop.annotations]
    return str(leaf.annotations[ANNOTATION])


@pytest.mark.parametrize(
    "shapes",
    [
        [(BIG,)] * 3,
        [(1, 1, 1024, 1024), (4, 12, 1024, 1024), ()],
        [(1 << 20, 1), (1 << 20, 3), (3,)],
        [(1024, 1, 1024), (1024, 16, 1), (16, 1024)],
        [(), (), ()],
    ],
)
def test_tiles_are_bound_to_blocks_and_vectors_of_a_tile_to_threads(shapes):
    workload = Workload(*shapes)
    tile, thread, vector, lane = loops_of(scheduled(workload))
    assert [tag(loop) for loop in (tile, thread, vector, lane)] == [
        "blockIdx.x",
        "threadIdx.x",
        None,
        None,
    ]
    per_tile = int(thread.extent) * int(vector.extent) * int(lane.extent)
    elements = access_pattern(workload).elements
    assert int(tile.extent) == -(-elements // per_tile)
    assert int(lane.extent) * access_pattern(workload).width == 16


def test_named_sizes_are_bound_too():
    tile, thread, *_ = loops_of(scheduled(Workload(["a", 1], ["a", "b"], ["b"])))
    assert (tag(tile), tag(thread)) == ("blockIdx.x", "threadIdx.x")


def test_capped_grid_takes_tile_after_tile():
    loops = loops_of(scheduled(Workload((BIG,), (BIG,), (BIG,)), max_blocks=1056))
    assert [tag(loop) for loop in loops] == ["blockIdx.x", "threadIdx.x", None, None, None]
    assert int(loops[0].extent) == 1056
    assert "STRIDED = true" in lowered(Workload((BIG,), (BIG,), (BIG,)), max_blocks=1056).kernel


def test_grid_is_never_larger_than_cuda_takes():
    tiles = 1 << 40
    huge = Workload((tiles,), (tiles,), (), "float64")
    assert int(lowered(huge, threads=128, vectors=1).blocks) == cuda.LARGEST_GRID
    assert str(cuda.LARGEST_GRID) in lowered(Workload(["n"], ["n"], [])).blocks


@pytest.mark.parametrize(
    ("shapes", "moves"),
    [
        ([(64, 64), (64, 64), (64, 64)], "fff"),
        ([(64, 64), (64, 64), ()], "ffs"),
        ([(64, 1), (64, 64), (64,)], "ofi"),
        ([(64, 3), (64, 1), ()], "fos"),
        ([(64, 1, 5), (1, 7, 1), ()], "ios"),
        ([(), (), ()], "sss"),
    ],
)
def test_span_is_chosen_by_the_access_pattern(shapes, moves):
    symbol = span_symbol(Workload(*shapes, auto_broadcast="multidirectional"))
    assert symbol.startswith(f"te_select_span_w4_{moves}")


def test_scalar_of_16_bytes_is_a_pair():
    assert "_w8_ofp" in span_symbol(Workload((9,), (9,), (), "complex128"))


def test_small_work_has_fewer_vectors_per_thread_and_keeps_its_output_in_the_cache():
    def config(n):
        return cuda.default_config(access_pattern(Workload((n,), (n,), (n,))), None)

    assert config(1000).vectors == 1 and not config(1000).stream
    assert config(BIG).vectors > 1 and config(BIG).stream


def test_element_types_of_one_width_are_one_kernel():
    kernels = {
        lowered(Workload((33, 65), (33, 65), (65,), dtype)).kernel
        for dtype in ("float32", "int32", "uint32")
    }
    assert len(kernels) == 1


def test_same_config_makes_the_same_function():
    workload = Workload((1, 1, 512, 512), (4, 12, 512, 512), ())
    assert tvm_ffi.structural_equal(scheduled(workload), scheduled(workload))


def test_lowered_function_calls_the_span_under_its_bound_loops():
    script = lowered(Workload(["a", 1], ["a", "b"], ["b"])).func.script()
    assert 'T.call_extern("void", "te_select_span_w4_ofi' in script
    assert 'thread="blockIdx.x"' in script and 'thread="threadIdx.x"' in script


def test_names_that_are_no_identifiers_in_c_are_not_used():
    function = lowered(Workload(["while", 1], ["while", 3], [3]))
    assert "while" not in function.kernel and "sizes[0]" in function.blocks


@pytest.mark.parametrize("shape", [(0,), (4, 0)])
def test_nothing_to_do_has_no_blocks(shape):
    function = lowered(Workload(shape, shape, ()))
    assert function.blocks == "0"
    assert "__global__" in function.kernel


def test_kernels_share_one_prelude():
    functions = [lowered(Workload((n,), (n,), ()), f"kernel_{n}") for n in (3, 5)]
    text = translation_unit(functions)
    assert text.count("namespace te_select {") == 2
    assert "#include" not in text
    assert all(function.kernel in text for function in functions)


def test_symbol_holds_every_parameter():
    span = Span(8, "o", "f", "p", streaming=True, skipping=True)
    assert Span.from_symbol(span.symbol) == span


@pytest.mark.parametrize(
    "wrong", ["", "memcpy", "te_select_span_w4_fxf", "te_select_span_w4_fff_i1"]
)
def test_other_symbols_are_refused(wrong):
    with pytest.raises(ValueError, match="not the symbol of a span"):
        Span.from_symbol(wrong)


@pytest.mark.parametrize(
    "knobs",
    [
        {"threads": 100},
        {"vectors": 3},
        {"stream": 1},
        {"max_blocks": -1},
        {"max_blocks": 1 << 31},
        {"vectors": 2.0},
    ],
)
def test_config_that_cannot_be_followed_is_refused(knobs):
    pattern = access_pattern(Workload((9,), (9,), ()))
    config = dataclasses.replace(cuda.default_config(pattern, None), **knobs)
    with pytest.raises(ValueError, match=r"must be|expected"):
        config.checked(pattern)
