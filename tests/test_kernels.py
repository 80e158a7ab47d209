"""Whole kernels against NumPy, bit for bit."""

import itertools

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest import mark

import te_select
from te_select import Workload, export, load
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.timing.inputs import Operands, placed
from tests.support import flat, flat_and_scalar, python
from tests.support import strategies as s
from tests.support.cases import the_others_slow
from tests.support.machines import on_x86_64

pytestmark = mark.usefixtures("one_process")

ONE_PER_WIDTH = ("uint8", "float16", "float32", "float64", "complex128")
AROUND_VECTORS = (0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 257)


def check(kernel, workload, seed=0):
    operands = s.operands(np.random.default_rng(seed), workload)
    out = kernel(*operands)
    assert out.shape == workload.out_shape
    assert np.array_equal(s.as_bytes(out), s.expected(workload, *operands))


@settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow])
@given(
    s.workloads(),
    st.integers(0, 2**32 - 1),
    st.tuples(*[st.sampled_from([*s.LAYOUTS])] * 3),
    st.sampled_from(["new", *s.LAYOUTS]).filter(lambda how: how != "read-only"),
)
def test_any_workload_in_any_layout_equals_numpy(workload, seed, layouts, out_layout):
    rng = np.random.default_rng(seed)
    kernel = te_select.compile(workload)
    operands = s.operands(rng, workload)
    want = s.expected(workload, *operands)
    laid_out = [s.strided(a, how) for a, how in zip(operands, layouts, strict=True)]
    if out_layout == "new":
        got = kernel(*laid_out)
    else:
        target = s.strided(s.random_bits(rng, workload.out_shape, workload.dtype), out_layout)
        got = kernel(*laid_out, out=target)
        assert got is target
    assert np.array_equal(s.as_bytes(got), want)


@mark.parametrize("dtype", ONE_PER_WIDTH)
def test_named_size_around_the_vector_width(dtype):
    kernel = te_select.compile(flat("n", dtype))
    for n in AROUND_VECTORS:
        check(kernel, kernel.workload.bind({"n": n}), seed=n)


@mark.parametrize("dtype", the_others_slow(ELEMENT_TYPES, ["uint8", "float32"]))
def test_element_type_by_every_access_pattern_of_two_loops(dtype, tmp_path):
    shapes = [(1, 1), (37, 1), (1, 5), (37, 5)]
    triples = itertools.product(shapes, repeat=3)
    every = list(dict.fromkeys(Workload(*each, dtype, "multidirectional") for each in triples))
    library = load(export(every, tmp_path / "patterns.so"))
    assert len(library) == len(every)
    for workload in every:
        check(library[workload.name], workload)


@on_x86_64
@mark.parametrize("target", ["x86-64", "x86-64-v2", "x86-64-v3"])
def test_every_level_of_the_architecture_selects_the_same_bits(target, tmp_path):
    workloads = [
        Workload(*shapes, dtype, "multidirectional")
        for shapes in (
            [(1000,)] * 3,
            [(333, 1), (333, 3), (3,)],
            [(40, 1), (40, 77), (77,)],
            [(7, 65), (), ()],
        )
        for dtype in ("bool", "bfloat16", "float32", "complex64", "complex128")
    ]
    library = load(export(workloads, tmp_path / "levels.so", target))
    for workload in workloads:
        check(library[workload.name], workload)


UNREAD = """
    import ctypes, mmap, platform, numpy as np, te_select
    from te_select.timing.inputs import aligned_empty
    libc = ctypes.CDLL(None, use_errno=True)

    def check(cond, shape, dtype, of_config):
        dtype = np.dtype(dtype)
        k = te_select.compile(te_select.Workload(cond, shape, shape, dtype), tuning_logs=False)
        assert {name: k.config[name] for name in of_config} == of_config
        size = dtype.itemsize * int(np.prod(shape))
        guarded = mmap.mmap(-1, size)
        unread = np.frombuffer(guarded, dtype).reshape(shape)
        assert libc.mprotect(ctypes.c_void_p(unread.ctypes.data), size, 0) == 0
        sevens = np.full(shape, 7, dtype)
        out = aligned_empty(shape, dtype)  # the head of an unaligned one is no block of cond
        for value in (False, True):
            sides = (sevens, unread) if value else (unread, sevens)
            assert (k(np.full(cond, value), *sides, out=out) == 7).all()
            out[...] = 0

    check((8, 1), (8, 4096), "uint8", {"rows": False})  # a row is a span of its own
    # Rows end to end, if stores may go past the cache.
    check((1 << 17, 1), (1 << 17, 77), "uint16", {"rows": platform.machine() == "x86_64"})
    check((1 << 18,), (1 << 18,), "float32", {"rows": False, "skip": -1})  # blocks of cond
    print("unread")
"""


def test_side_that_cond_does_not_select_is_not_read():
    """The unread side may be anything: here it is memory that must not be read."""
    assert python(UNREAD) == "unread\n"


@mark.slow
def test_more_elements_than_a_32_bit_index_holds():
    n = 2**31 + 80
    kernel = te_select.compile(flat_and_scalar(n, "uint8"))
    cond = np.zeros(n, np.bool_)
    cond[[0, 2**31 - 1, 2**31, n - 1]] = True
    then = np.zeros(n, np.uint8)  # whose pages are not made
    out = kernel(cond, then, np.uint8(4))
    assert not out[[0, 2**31 - 1, 2**31, n - 1]].any()
    words = out.view(np.uint64)
    around = words[words != 0x0404040404040404]
    assert around.size == 4 and np.count_nonzero(around.view(np.uint8) == 4) == 28


@mark.slow
def test_many_rows_beyond_32_bits_of_output():
    kernel = te_select.compile(Workload((65537, 1), (1, 32769), (), "uint8", "multidirectional"))
    cond = np.zeros((65537, 1), np.bool_)
    cond[-1] = True
    then = np.arange(32769, dtype=np.uint32).astype(np.uint8)[None]
    out = kernel(cond, then, np.uint8(3))
    assert (out[-1] == then[0]).all() and (out[[0, -2]] == 3).all()


@mark.parametrize("dtype", ["uint8", "float32"])
@mark.parametrize("n", [4099, 70001, (5 << 20) + 13])
def test_output_whole_megabytes_and_a_little_from_the_inputs(dtype, n):
    rng = np.random.default_rng(n)
    kernel = te_select.compile(flat(n, dtype))
    arrays = s.random_cond(rng, (n,)), *(s.random_bits(rng, (n,), dtype) for _ in range(3))
    want = s.expected(kernel.workload, *arrays[:3])
    for ahead in (0, 1, 64, 767, 768, 769, 4031, 4095):
        at = placed(Operands(kernel.workload, *arrays), ahead)
        kernel(at.cond, at.then, at.else_, out=at.out)
        assert np.array_equal(s.as_bytes(at.out), want)
