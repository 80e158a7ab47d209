"""where() in a thread with a small stack, in which NumPy's works."""

import pytest

from tests.support.programs import python

CALLS = """
    import threading

    import numpy as np
    import te_select

    rng = np.random.default_rng(0)

    def operands(m, n):
        cond, x, y = rng.random((m, n)) < 0.5, rng.random((m, n)), rng.random((m, n))
        flags, turned = rng.random((n, m)) < 0.5, rng.random((n, m))
        yield cond, x, y
        yield flags.T, x[::-1], turned.T  # by tiles
        yield cond[:, :1], x, 1.5  # a row is made of a single value
        yield cond[:, :3], x[:, :3], y[:1, :3]
        yield flags.T[:, :1], x.astype("f4")[:, ::2], turned.T.astype("f4")[:1, ::2]

    given = [call for shape in ((10, 10), (1500, 1400)) for call in operands(*shape)]
    right = []

    def call():
        for each in given:
            right.append(np.array_equal(te_select.where(*each), np.where(*each)))

    threading.stack_size(32 << 10)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    print(te_select.where.stats().calls - len(given), right.count(True) - len(given))
"""


@pytest.mark.slow
def test_every_call_works_in_a_thread_with_a_small_stack(tmp_path):
    """The thread also makes the first call, and so builds the kernels."""
    shown = {"TE_SELECT_CACHE_DIR": str(tmp_path), "TE_SELECT_NUM_THREADS": "2"}
    assert python(CALLS, **shown) == "0 0\n"
