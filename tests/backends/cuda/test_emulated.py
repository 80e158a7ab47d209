"""CUDA kernels on the CPU against NumPy, bit for bit, with every access checked."""

import dataclasses
import itertools
from ctypes import addressof, c_int64, c_uint8, c_void_p

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pytest import mark

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.schedules.cuda import schedule as cuda
from tests.support import alike, flat, flat_and_scalar, shapes
from tests.support import strategies as s
from tests.support.cuda_emulation import WIDTHS, Emulated, lowered
from tests.support.oracle.cases import shifted

NONE = (0, 0, 0, 0)


def emulate(workloads, folder, **knobs):
    symbols = {f"kernel_{k}": workload for k, workload in enumerate(workloads)}
    functions = [lowered(workload, symbol, **knobs) for symbol, workload in symbols.items()]
    return Emulated.of(functions, folder), symbols


def check(emulated, symbol, workload, sizes=None, *, seed=0, offsets=NONE, **how):
    """Run one kernel; an offset is an operand's distance from a 64-byte boundary, in elements."""
    bound = workload.bind(sizes) if sizes else workload
    rng = np.random.default_rng(seed)
    cond, *sides = s.operands(rng, bound)
    operands = [how.pop("cond", cond), *sides, s.random_bits(rng, bound.out_shape, bound.dtype)]
    steps = (offset * min(a.itemsize, 8) for a, offset in zip(operands, offsets, strict=True))
    operands = [shifted(a, step) for a, step in zip(operands, steps, strict=True)]
    want = s.expected(bound, *operands[:3])
    emulated.run(symbol, workload, sizes or {}, operands, **how)
    assert np.array_equal(s.as_bytes(operands[3]), want), (bound, offsets)


@mark.slow
@mark.parametrize("dtype", WIDTHS)
def test_element_type_by_every_access_pattern_of_two_loops(dtype, tmp_path):
    shapes = [(1, 1), (37, 1), (1, 5), (37, 5)]
    wide = [(1, 1), (19, 1), (1, 48), (19, 48)]
    workloads = [
        Workload(*each, dtype, "multidirectional")
        for extents in (shapes, wide)
        for each in itertools.product(extents, repeat=3)
    ]
    unique = {str(access_pattern(workload)): workload for workload in workloads}
    offsets = (NONE, (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (1, 1, 1, 1), (3, 0, 5, 7))
    emulated, symbols = emulate(unique.values(), tmp_path)
    for symbol, workload in symbols.items():
        for seed, at in enumerate(offsets):
            check(emulated, symbol, workload, seed=seed, offsets=at)


OFFSETS = (  # whole vectors at each address, then one operand that is not aligned, then several
    (0, 0, 0, 0),
    (16, 32, 16, 48),
    (1, 0, 0, 0),
    (0, 1, 0, 0),
    (0, 0, 1, 0),
    (0, 0, 0, 1),
    (1, 1, 0, 1),
    (1, 1, 1, 1),
    (3, 16, 5, 16),
)


@mark.parametrize("dims", [(40, 64), ("r", "n")])
def test_aligned_rows_of_whole_vectors_take_their_own_way(dims, tmp_path):
    """That way reads a cond of one value a row once for a vector, not for each element."""
    rows, row = dims
    workload = Workload([rows, 1], [rows, row], [row])
    emulated, _ = emulate([workload], tmp_path, vectors=1)
    sizes = {"r": 40, "n": 64} if workload.dim_names else {}
    cond = np.ones((40, 1), bool)
    read = {}
    for offsets in OFFSETS:
        check(emulated, "kernel_0", workload, sizes, cond=cond, offsets=offsets)
        read[offsets] = emulated.loaded["then"] / emulated.loaded["cond"]
    whole = {offsets for offsets, ratio in read.items() if ratio == 16}  # bytes of a vector
    # Neither then, which moves along every loop, nor else_ nor out may be off a vector's address.
    assert whole == {o for o in OFFSETS if not any(offset % 4 for offset in o[1:])}
    assert {read[offsets] for offsets in set(OFFSETS) - whole} == {4}  # bytes of an element


@mark.slow
def test_any_workload_at_any_offset_equals_numpy(tmp_path_factory):
    @settings(
        max_examples=3,
        phases=[Phase.explicit, Phase.generate],  # each try compiles for seconds
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(s.workloads(), min_size=16, max_size=16), st.integers(0, 2**32 - 1))
    def run(workloads, seed):
        unique = list(dict.fromkeys(workloads))
        emulated, symbols = emulate(unique, tmp_path_factory.mktemp("any"))
        rng = np.random.default_rng(seed)
        for symbol, workload in symbols.items():
            drawn = rng.integers(0, 17, (8, 4))
            whole = 16 * rng.integers(0, 2, (8, 4))  # every vector at its address
            one_off = whole + np.eye(4, dtype=int)[rng.integers(0, 4, 8)]
            for offsets in (*OFFSETS, *drawn, *whole, *one_off):
                check(emulated, symbol, workload, seed=seed, offsets=tuple(offsets))

    run()


@mark.slow
@mark.parametrize(
    "of",
    ["70001 70001 70001", "9001,1 9001,3 3", "401,1 401,76 76", "5,1,65 1,131,1 5,131,65"],
)
@mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_every_value_of_every_knob_selects_the_same_bits(of, dtype, tmp_path):
    workload = Workload(*shapes(of), dtype, "multidirectional")
    pattern = access_pattern(workload)
    space = cuda.space(pattern, None)
    assert set(space) == {field.name for field in dataclasses.fields(cuda.Config)}
    rng = np.random.default_rng(0)
    shuffled = {name: rng.permutation(values).tolist() for name, values in space.items()}
    draws = [  # every value of every knob
        {name: values[turn % len(values)] for name, values in shuffled.items()}
        for turn in range(max(6, *map(len, shuffled.values())))
    ]
    draws.append({**draws[0], "max_blocks": 3})
    functions = [lowered(workload, f"kernel_{k}", **knobs) for k, knobs in enumerate(draws)]
    emulated = Emulated.of(functions, tmp_path)
    cond = s.random_cond(rng, workload.cond_shape)
    cond.reshape(-1)[: cond.size // 3] = True
    cond.reshape(-1)[cond.size // 2 : cond.size // 2 + cond.size // 4] = False
    for function in functions:
        check(emulated, function.symbol, workload, cond=cond)


@mark.slow
@mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_indices_of_64_bits_select_the_same_bits(dtype, tmp_path):
    """Test 64-bit indices on short runs: the kernel is told that no run is short."""
    workloads = [
        flat_and_scalar(9_001, dtype),
        Workload(*shapes("501,1 501,48 48"), dtype),
        Workload(["a", 1, "b"], ["a", 5, 1], [5, "b"], dtype, "multidirectional"),
    ]
    functions = [lowered(w, f"kernel_{k}", vectors=8) for k, w in enumerate(workloads)]

    def edit(source):
        assert "SHORT = 0x7fffffff" in source
        return source.replace("SHORT = 0x7fffffff", "SHORT = 0")

    emulated = Emulated.of(functions, tmp_path, edit)
    for function, workload in zip(functions, workloads, strict=True):
        for inner in (7, 64):
            sizes = {"a": 33, "b": inner} if workload.dim_names else {}
            check(emulated, function.symbol, workload, sizes, seed=inner)
            check(emulated, function.symbol, workload, sizes, offsets=(1, 1, 0, 1))


@mark.parametrize("extent", ["n", 2**31 - 1, 2**31])
def test_indices_have_64_bits_from_2_to_the_31_elements_on(extent, tmp_path):
    def edit(source):
        """Record which way is taken, without taking it."""
        for bits in (32, 64):
            call = f"span<K, u{bits}>(loops, operands);"
            assert call in source
            source = source.replace(call, f'emulator::error = "{bits}";')
        return source

    function = lowered(flat_and_scalar(extent, "uint8"))
    library = Emulated.of([function], tmp_path, edit).library
    for n in (1000, 2**31 - 1, 2**31, 2**40) if extent == "n" else (extent,):
        pointers = [c_void_p() for _ in range(4)]
        values = [*pointers, *([c_int64(n)] if extent == "n" else [])]
        values.append((c_uint8 * 48)())
        params = (c_void_p * len(values))(*(addressof(v) for v in values))
        library.te_select_emulated_kernel(c_int64(1), 1, params)
        assert library.te_select_emulator_error() == (b"32" if n < 2**31 else b"64")


def test_named_size_of_more_tiles_than_a_grid_is_done_whole(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.backends.cuda.lowering.schedule.LARGEST_GRID", 3)
    workload = flat("n")
    emulated, _ = emulate([workload], tmp_path, vectors=1, threads=128)
    tile = 128 * 4
    for tiles in (1, 3, 4, 10):
        check(emulated, "kernel_0", workload, {"n": tiles * tile + 5})


def test_side_that_a_row_or_a_block_does_not_select_is_not_read(tmp_path):
    rows = Workload(*shapes("64,1 64,512 64,512"))
    blocks = alike(64, 512)
    emulated, _ = emulate([rows, blocks], tmp_path, skip=True)
    for symbol, workload in (("kernel_0", rows), ("kernel_1", blocks)):
        for value, read, unread in ((True, "then", "else_"), (False, "else_", "then")):
            check(emulated, symbol, workload, cond=np.full(workload.cond_shape, value))
            assert (emulated.loaded[read], emulated.loaded[unread]) == (64 * 512 * 4, 0)


def test_what_is_used_once_is_the_first_to_leave_the_caches(tmp_path):
    blend = Workload(*shapes("64,512 64,512 512"))
    rows = Workload(*shapes("64,1 64,512 512"))
    whole = 64 * 512
    emulated, _ = emulate([blend, rows], tmp_path, stream=True)
    check(emulated, "kernel_0", blend, cond=(np.arange(whole) % 2 == 0).reshape(64, 512))
    used_again = {"else_": 0}
    assert emulated.streamed == {"cond": whole, "then": 4 * whole, "out": 4 * whole, **used_again}
    check(emulated, "kernel_1", rows, cond=np.zeros((64, 1), bool))
    assert emulated.loaded["else_"] == 4 * whole
    assert emulated.streamed == {"cond": 0, "then": 0, "out": 4 * whole, **used_again}
