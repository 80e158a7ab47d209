"""The C half: threads, rows and tiles; and it touches no byte beside the operands."""

import numpy as np
import pytest

import te_select
from te_select.verify.guarded import Guarded
from tests.support.programs import python

where = te_select.where
WIDTHS = ("u1", "u2", "u4", "u8", "c16", "V12", "S3")


def bits(rng, shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return rng.integers(1, 256, size, np.uint8).view(dtype).reshape(shape)


def check(cond, x, y):
    expected = np.where(cond, x, y)
    found = where(cond, x, y)
    assert found.strides == expected.strides
    assert np.array_equal(found.view(np.uint8), expected.view(np.uint8))


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize(
    "cond, x, y",
    [
        ((2000, 700), (2000, 700), (700,)),  # large enough for threads and stores past the cache
        ((2000, 1), (2000, 700), ()),
        ((100_000, 1), (100_000, 3), (3,)),  # kernels of rows
        ((100_000, 3), (100_000, 1), (3,)),
        ((50_000, 1), (50_000, 1), (1, 31)),
    ],
)
def test_broadcasts_of_every_width(cond, x, y, dtype):
    rng = np.random.default_rng(0)
    check(rng.random(cond) < 0.5, bits(rng, x, dtype), bits(rng, y, dtype))


@pytest.mark.parametrize("shapes", [((9, 1), (9, 2), (9, 2)), ((9, 3), (1, 3), (9, 1))])
def test_short_rows_of_16_byte_elements_need_no_kernel_of_rows(shapes):
    rng = np.random.default_rng(3)
    m = 50_000  # elements enough that a kernel that is missed would be built
    cond, x, y = (tuple(m if n == 9 else n for n in shape) for shape in shapes)
    args = rng.integers(0, 2, cond, bool), bits(rng, x, "c16"), bits(rng, y, "c16")
    out = np.empty(np.broadcast_shapes(cond, x, y), "c16")
    for _ in range(40):
        where(*args, out=out)
    assert np.array_equal(out.view(np.uint8), np.where(*args).view(np.uint8))


SHAPES = [((n,), (n,), ()) for n in (1, 2, 3, 15, 17, 31, 63, 64, 65, 255, 1000, 4099)]
SHAPES += [((m, 1), (m, n), (n,)) for m in (1, 2, 5, 33) for n in (1, 2, 3, 7, 8, 9, 40, 129)]
SHAPES += [((n,), (m, 1), (m, n)) for m in (1, 3, 17) for n in (2, 5, 12, 77)]


def fenced(array, end):
    """A copy whose first or last byte lies beside memory that may not be touched."""
    held = Guarded(array.shape, array.dtype)
    held.move(held.ends[end])
    held.array()[...] = array
    return held.array()


@pytest.mark.parametrize("end", [0, 1])
@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "c16", "S3"])
def test_no_byte_beside_the_operands_is_touched(dtype, end):
    rng = np.random.default_rng(0)
    calls = where.stats().calls
    for cond, x, y in SHAPES:
        given = rng.random(cond) < 0.5, bits(rng, x, dtype), bits(rng, y, dtype)
        for step in (1, -1):
            expected = np.where(*(a[..., ::step] if a.ndim else a for a in given))
            inputs = (fenced(a, end) for a in given)
            out = fenced(np.zeros_like(expected), end)
            where(*(a[..., ::step] if a.ndim else a for a in inputs), out=out)
            assert out.tobytes() == expected.tobytes(), (cond, x, y, step)
    assert where.stats().calls - calls == 2 * len(SHAPES)


@pytest.mark.parametrize("call", ["where(c, a, a)", "select([c, c], [a, a], a)"])
def test_large_call_has_a_second_thread(call):
    code = """
        import os
        import numpy as np
        import te_select

        def helpers():
            tasks = os.listdir("/proc/self/task")
            names = [open(f"/proc/self/task/{id}/comm").read() for id in tasks]
            return names.count("te_select\\n")

        x = np.ones((1000, 1000))
        for c in (x[:9] > 0, x > 0, x.T > 0):
            a = x[: len(c)]
            te_select.CALL
            print(helpers())
        """
    code = code.replace("CALL", call)
    assert python(code, TE_SELECT_NUM_THREADS="2").split() == ["0", "1", "1"]
