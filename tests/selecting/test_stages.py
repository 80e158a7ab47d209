"""Operands of other types are converted on the way: the results are NumPy's, bit for bit."""

import platform

import numpy as np
from pytest import importorskip, mark, raises

import te_select
from te_select.operator.stages import NUMBERS
from tests.selecting.table import EACH, SEEDS, check_out
from tests.support import ROOT, python
from tests.support.where_calls import difference, exported, operand, outcome, random_shape, strided

where = te_select.where
FORCED = (
    "stream_per_thread=0,stream_per_l3=0,fill_per_thread=0,fill_per_l3=0,fill_reads=50,"
    "bytes_per_thread=4096,skip=1,backwards=1"
)


def random_call(rng, most=9000):
    """Operands of numbers of any types, which broadcast, with gaps, backwards or turned."""
    shape = random_shape(rng, most)
    of = [np.dtype(str(name)) for name in rng.choice(NUMBERS, 3)]
    if rng.random() < 0.5:
        of[0] = np.dtype(bool)
    return [operand(rng, shape, each) for each in of]


def check(given, rng=None):
    """Compare a call with NumPy's, with an out of any layout, too."""
    expected = outcome(np.where, given)
    assert difference(outcome(where, given), expected) is None, given
    result = expected[0]
    if isinstance(result, np.ndarray):
        out = strided(rng, result.shape, result.dtype) if rng else np.empty_like(result)
        check_out(where, given, out, expected)


def check_random(seed, count, most=9000):
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        check(random_call(rng, most), rng)


@SEEDS
def test_random_calls_are_those_of_numpy(seed):
    check_random(seed, EACH)


def test_threads_and_stores_past_the_cache_change_no_bits():
    code = "from tests.selecting.test_stages import *; check_random(9, 60, 300_000); spread()"
    python(code, cwd=ROOT, TE_SELECT_NUM_THREADS="3", TE_SELECT_PROFILE=FORCED)


def spread():
    """With these variables a large call stores past the cache."""
    x = np.ones(300_000)
    assert where.explain(x > 0, x.astype("f4"), x).past_cache


@mark.parametrize("source, target", [("u1", "f4"), ("f2", "f8"), ("i4", "f8"), ("f4", "c16")])
def test_unaligned_operands_are_converted(source, target):
    for dtypes in ((source, target), (target, source)):
        x, y = (np.frombuffer(bytes(range(1, 200)) * 160, each, 900, offset=1) for each in dtypes)
        assert not (x.flags.aligned and y.flags.aligned)
        check((np.arange(900) % 3 == 0, x, y))
        check((x, x, y))


# ---- NumPy's other functions --------------------------------------------------------------------


@mark.parametrize("dtype, own", [("f8", "f4"), ("c16", "c8"), ("f4", "i4"), ("i4", "i8")])
def test_what_numpy_warns_of_or_does_not_promote_is_left(dtype, own):
    mask = np.arange(900) % 3 == 0
    values = np.full(900, 3).astype(own)
    if own in ("f4", "c8"):
        values.real[:] = np.array([0x7FA00001], "u4").view("f4")
    made, expected = np.full((2, 900), 7, dtype)
    before = te_select.where.stats().calls
    for casting in ("same_kind", "unsafe"):
        ours = outcome(te_select.copyto, (made, values, casting, mask))
        assert ours == outcome(np.copyto, (expected, values, casting, mask))
        assert made.tobytes() == expected.tobytes()
    assert te_select.where.stats().calls == before


# ---- torch --------------------------------------------------------------------------------------


@mark.filterwarnings("ignore:ComplexHalf")
def test_tensors_of_unequal_types_are_torchs_to_the_bit():
    torch = importorskip("torch")
    names = [name for name in NUMBERS if name not in ("uint16", "uint32", "uint64")]
    generator = torch.Generator().manual_seed(0)
    cond = torch.rand(30, 40, generator=generator) < 0.5
    numbers = torch.randint(0, 256, (30, 40 * 16), dtype=torch.uint8, generator=generator)
    of = {name: numbers.view(getattr(torch, name))[:, :40] for name in names if name != "bool"}
    of["bool"] = numbers[:, :40] > 99
    before = where.stats().calls
    for x in of.values():
        for y in of.values():
            for given in ((cond, x, y), (cond.T, x.T, y[0, :30]), (cond, x[:, :1], y[3, 5])):
                expected = torch.where(*given)
                found = where(*given)
                assert found.dtype is expected.dtype and found.stride() == expected.stride()
                wanted = expected.contiguous().view(torch.uint8)
                assert torch.equal(found.contiguous().view(torch.uint8), wanted), (x.dtype, y.dtype)
    assert where.stats().calls == before + 3 * len(of) ** 2


def test_function_of_tensors_converts_what_overlaps_nothing():
    where(True, np.ones(9, "f4"), np.ones(9, "u1"))  # which loads the stages
    select = exported("te_select_where")
    cond = np.ones(9, bool)
    out = np.zeros(9, "f4")
    select(cond, np.full(9, 3, "u1"), np.ones(9, "f4"), out)
    assert (out == 3).all()
    with raises(ValueError, match="overlaps"):
        select(cond, out.view("u1")[:9], out, out)
    with raises(TypeError, match="not of out's type"):
        select(cond, np.ones(9, "u1"), cond, cond.copy())


NEAREST, DOWNWARD, UPWARD, TO_ZERO = 0, 0x2000, 0x4000, 0x8040  # of MXCSR; subnormals are zeros
MODES = f"""
import ctypes, numpy as np, te_select
libm = ctypes.CDLL("libm.so.6")
def set_mode(mode):
    modes = (ctypes.c_uint32 * 8)()  # fenv_t of glibc, whose last word is MXCSR
    libm.fegetenv(modes)
    modes[7] = modes[7] & ~{UPWARD | DOWNWARD | TO_ZERO} | mode
    libm.fesetenv(modes)
def where(of, cond, x, y):
    return of.where(cond, x, y)
def select(of, cond, x, y):
    return of.select([cond, cond], [x, y], y[0])
def copyto(of, cond, x, y):
    of.copyto(out := y.copy(), x, where=cond)
    return out
def putmask(of, cond, x, y):
    of.putmask(out := y.copy(), cond, x)
    return out
n = 300_000
tiny, zeros = np.full(n, 1e-40, "f4"), np.zeros(n)
halves = np.resize(np.array([0.0, -0.0, 6e-8, -6e-8, 1.0], "f2"), n)
pairs = [(np.full(n, 2**53 + 1), zeros), (tiny, zeros), (halves, tiny), (halves, zeros + 0j)]
for x, y in pairs:
    te_select.where(x, x, y)  # kernels are there before the mode is set
"""


@mark.skipif(platform.machine() != "x86_64", reason="other CPUs have no MXCSR")
@mark.parametrize("function", ["where", "select", "copyto", "putmask"])
def test_threads_compute_in_the_mode_of_the_caller(function):
    code = f"""{MODES}
for mode in {NEAREST, UPWARD, DOWNWARD, TO_ZERO, NEAREST, UPWARD | TO_ZERO, DOWNWARD}:
    set_mode(mode)
    for x, y in pairs:
        for cond in (x > 0, tiny > 0) if {function!r} != "where" else (x, tiny):
            found, expected = ({function}(of, cond, x, y) for of in (te_select, np))
            assert found.tobytes() == expected.tobytes(), (mode, x.dtype, cond.dtype)
"""
    python(code, TE_SELECT_NUM_THREADS="3", TE_SELECT_PROFILE=FORCED)
