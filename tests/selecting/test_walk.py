"""The C half: threads, rows and tiles; and it touches no byte beside the operands."""

import numpy as np
from pytest import mark

import te_select
from te_select.verify.guarded import Guarded
from tests.support import python
from tests.support.operands import random

where = te_select.where


SHAPES = [((n,), (n,), ()) for n in (1, 2, 3, 15, 17, 31, 63, 64, 65, 255, 1000, 4099)]
SHAPES += [((m, 1), (m, n), (n,)) for m in (1, 2, 5, 33) for n in (1, 2, 3, 7, 8, 9, 40, 129)]
SHAPES += [((n,), (m, 1), (m, n)) for m in (1, 3, 17) for n in (2, 5, 12, 77)]


def fenced(array, end):
    """A copy whose first or last byte lies beside memory that may not be touched."""
    held = Guarded(array.shape, array.dtype)
    held.move(held.ends[end])
    held.array()[...] = array
    return held.array()


@mark.parametrize("end", [0, 1])
@mark.parametrize("dtype", ["u1", "u2", "u4", "u8", "c16", "S3"])
def test_no_byte_beside_the_operands_is_touched(dtype, end):
    rng = np.random.default_rng(0)
    calls = where.stats().calls
    for cond, x, y in SHAPES:
        given = rng.random(cond) < 0.5, *(random(side, np.dtype(dtype), rng) for side in (x, y))
        for step in (1, -1):
            expected = np.where(*(a[..., ::step] if a.ndim else a for a in given))
            inputs = (fenced(a, end) for a in given)
            out = fenced(np.zeros_like(expected), end)
            where(*(a[..., ::step] if a.ndim else a for a in inputs), out=out)
            assert out.tobytes() == expected.tobytes(), (cond, x, y, step)
    assert where.stats().calls - calls == 2 * len(SHAPES)


@mark.parametrize("call, moved", [("where(c, a, a)", 25), ("select([c, c], [a, a], a)", 34)])
def test_call_of_many_bytes_has_a_second_thread(call, moved):
    """Each thread has to move the bytes of 250,000 elements."""
    code = f"""
        import os
        import time
        os.environ["TE_SELECT_NUM_THREADS"] = "2"
        os.environ["TE_SELECT_PROFILE"] = "bytes_per_thread={moved * 250_000}"
        import numpy as np
        import te_select

        def helpers():
            time.sleep(0.1)  # the thread that looks for OpenMP ends meanwhile
            tasks = os.listdir("/proc/self/task")
            names = [open(f"/proc/self/task/{{id}}/comm").read() for id in tasks]
            return names.count("te_select\\n")

        x = np.ones((1000, 1000))
        for c in (x[:499] > 0, x[:500] > 0, x.T > 0):
            a = x[: len(c)]
            te_select.{call}
            print(helpers())
        """
    assert python(code).split() == ["0", "1", "1"]
