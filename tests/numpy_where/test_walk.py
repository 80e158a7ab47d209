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
        ((3, 5), (3, 5), (3, 5)),
        ((2000, 700), (2000, 700), (700,)),  # large enough for threads and stores past the cache
        ((2000, 1), (2000, 700), ()),
        ((100_000, 1), (100_000, 3), (3,)),  # kernels of rows
        ((100_000, 3), (100_000, 1), (3,)),
        ((50_000, 1), (50_000, 1), (1, 31)),
        ((7, 1, 300, 5), (7, 20, 300, 5), (1, 20, 1, 1)),
        ((1, 1, 64, 64), (4, 12, 64, 64), ()),
    ],
)
def test_broadcasts_of_every_width(cond, x, y, dtype):
    rng = np.random.default_rng(0)
    check(rng.random(cond) < 0.5, bits(rng, x, dtype), bits(rng, y, dtype))


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
@pytest.mark.parametrize("shape", [(900, 1100), (40, 50, 600), (100_000, 4)])
def test_transposed_and_stepping_operands(shape, dtype):
    rng = np.random.default_rng(0)
    x, y = bits(rng, shape, dtype), bits(rng, shape[::-1], dtype)
    cond = rng.random((*shape[:-1], 2 * shape[-1])) < 0.5
    check(cond[..., ::2], x, y.T)
    check(cond[..., ::-2], x[::-1], y.T)


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


def test_rows_with_gaps_between_them():
    rng = np.random.default_rng(0)
    for extent in (3, 20, 200, 3000):
        x = bits(rng, (3000, extent + 5), "u4")[:, :extent]
        check(rng.random((3000, extent)) < 0.5, x, np.uint32(7))


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
    rng, calls = np.random.default_rng(0), where.stats().calls
    for cond, x, y in SHAPES:
        given = rng.random(cond) < 0.5, bits(rng, x, dtype), bits(rng, y, dtype)
        for step in (1, -1):
            expected = np.where(*(a[..., ::step] if a.ndim else a for a in given))
            inputs = (fenced(a, end) for a in given)
            out = fenced(np.zeros_like(expected), end)
            where(*(a[..., ::step] if a.ndim else a for a in inputs), out=out)
            assert out.tobytes() == expected.tobytes(), (cond, x, y, step)
    assert where.stats().calls - calls == 2 * len(SHAPES)


def test_threads_call_at_once():
    import concurrent.futures

    def call(seed):
        rng = np.random.default_rng(seed)
        for count in (10, 5000, 600_000):
            cond, x, y = rng.random(count) < 0.5, rng.random(count), rng.random(count)
            check(cond, x, y)
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(12)))


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


def test_masks_in_runs_are_selected_if_cond_is_tested_first():
    code = """
        import numpy as np
        import te_select

        rng = np.random.default_rng(0)
        causal = np.tri(500, 1500, 600, dtype=bool)
        masks = (
            causal, causal[:, ::-1], causal[::-1], causal.T, causal[:400, 3:1403], causal[::2],
            causal.reshape(10, 50, 1500), np.broadcast_to(causal, (2, 500, 1500)),
            np.repeat(rng.random(3000) < 0.5, 250).reshape(500, 1500),
            rng.random((500, 1500)) < 0.5,
            np.ones((500, 1500), bool), causal.reshape(-1)[1:], causal.view(np.uint8) * 7 > 0,
        )
        for mask in masks:
            for dtype in ("u1", "u2", "u4", "u8", "c16"):
                x = rng.integers(0, 99, mask.shape).astype(dtype)
                y = rng.integers(0, 99, mask.shape).astype(dtype)
                for given in ((mask, x, y), (mask, x, 3), (mask, y[..., :1], x)):
                    assert np.array_equal(te_select.where(*given), np.where(*given))
        """
    python(code, TE_SELECT_PROFILE="skip=1,bytes_per_thread=4096")
