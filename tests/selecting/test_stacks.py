"""where() in threads with small stacks, in which NumPy's works."""

from pytest import importorskip, mark

from tests.support import ROOT, python

CALLS = """
    import sys, threading

    way, size = sys.argv[1], int(sys.argv[2])
    import numpy as np
    import te_select

    rng = np.random.default_rng(0)

    def operands(m, n):
        cond, x, y = rng.random((m, n)) < 0.5, rng.random((m, n)), rng.random((m, n))
        turned = rng.random((n, m))
        flags = rng.random((n, m)) < 0.5
        yield cond, x, y
        yield flags.T, x[::-1], turned.T  # by tiles
        yield cond[:, :1], x, 1.5  # a row is made of a single value
        yield cond[:, :3], x[:, :3], y[:1, :3]
        yield flags.T[:, :1], x.astype("f4")[:, ::2], turned.T.astype("f4")[:1, ::2]
        yield cond, x.astype("S3"), y.astype("S3")

    given = [call for shape in ((10, 10), (300, 200), (1500, 1400)) for call in operands(*shape)]
    expected = [np.where(*call) for call in given]
    if way == "torch":
        import torch

        texts = [call[1].dtype.kind == "S" or min(call[1].strides) < 0 for call in given]
        given = [call for call, text in zip(given, texts) if not text]
        expected = [each for each, text in zip(expected, texts) if not text]
        given = [[torch.from_numpy(a) if hasattr(a, "shape") else a for a in c] for c in given]
    wrong = []

    def call(where):
        for k, (arguments, right) in enumerate(zip(given, expected)):
            if not np.array_equal(np.asarray(where(*arguments)), right):
                wrong.append(k)

    threading.stack_size(size)
    for where in (np.where, te_select.where) if way != "torch" else (te_select.where,):
        thread = threading.Thread(target=call, args=(where,))
        thread.start()
        thread.join()
    assert not wrong, wrong
    print(te_select.where.stats().calls - len(given))
"""


@mark.slow
@mark.parametrize("way", ["by the extension", "torch"])
def test_every_call_works_in_a_thread_with_a_small_stack(way, tmp_path):
    """The thread also makes the first call, and so builds or loads the kernels."""
    if way == "torch":
        importorskip("torch")
    shown = {"PYTHONPATH": str(ROOT)} if way == "torch" else {}  # it is hidden from children
    if way == "by the extension":
        shown["TE_SELECT_CACHE_DIR"] = str(tmp_path)  # so that it builds them
    assert python(CALLS, way, 32 << 10, TE_SELECT_NUM_THREADS="2", **shown) == "0\n"
