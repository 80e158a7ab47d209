"""te_select.where.explain says what a call would do, and does nothing."""

import itertools
import re

import numpy as np
from pytest import mark

import te_select
from tests.selecting.table import MASK, REAL
from tests.support import python
from tests.support.where_calls import path_of_python

where = te_select.where
explain = te_select.where.explain


@mark.parametrize("out", [None, np.empty(40_000)])
def test_conversions_are_told_with_the_kernel_that_runs(out):
    given = (np.arange(40_000), np.resize(REAL, 40_000), np.ones(40_000))
    before = where.stats().kernels
    found = explain(*given, out)
    of_cond, of_x = found.steps
    assert of_cond.startswith("cond is converted from int64")
    assert re.fullmatch(r"x is converted from float32 in blocks of \d+ elements", of_x)
    where(*given, out=out)
    counts = where.stats().kernels
    assert counts[found.kernel] - before.get(found.kernel, 0) == 40_000


@mark.parametrize("out", ["other", "x", "overlapping"])
def test_out_is_taken_in_place_or_copied_to_and_not_written(out):
    memory = np.ones(97, np.float32)
    x = memory[:96]
    target = {"other": np.zeros(96, np.float32), "x": x, "overlapping": memory[1:]}[out]
    before = target.copy()
    found = explain(MASK[0], x, 2.0, target)
    assert ("then copied to out" in found.steps) == (out == "overlapping")
    assert (target == before).all()


SIDES = (
    np.arange(4.0, dtype="f4"), np.arange(4, dtype="i1"), np.ones(4, ">f4"), np.ones(4, "O"), 1e300,
    "text", np.ones(4, "S3"), np.ones(4, "M8[s]"), np.ones(4, "M8[ms]"), [1, 2, 3, 4], 2.5, 2049,
    np.ones(4, "f2"), np.ones(0), np.ones((3, 1)), None, np.ones(4, "g"), np.ma.ones(4), 1j,
)  # fmt: skip
OUTS = (
    [0.0] * 4, np.zeros(4), np.zeros(4, "f4"), np.zeros(5), np.zeros((3, 4)), np.zeros(4, "O"),
    np.broadcast_to(np.zeros(1), (4,)), np.zeros(4, ">f4"), np.zeros(0), np.zeros(4, "M8[ms]"),
    np.zeros(4, "g"), np.zeros(4, "c16"), np.zeros(4, "S3"), 1.0, np.zeros(4, "U32"),
)  # fmt: skip
CONDS = np.array([True, False, True, False]), np.array([1.0, 0, np.nan, 2]), np.array(["a", ""] * 2)


@mark.filterwarnings("ignore")
@mark.parametrize("out", OUTS, ids=repr)
def test_out_is_refused_exactly_where_the_call_refuses_it(out):
    def said(function, *given):
        try:
            function(*given)
        except Exception as error:
            return type(error), str(error)
        return None

    def call(cond, x, y, out):
        where(cond, x, y, out=out.copy() if getattr(out, "base", out) is None else out)

    for cond, x, y in itertools.product(CONDS, SIDES, SIDES):
        if said(where, cond, x, y) is None:  # NumPy takes the operands
            assert said(explain, cond, x, y, out) == said(call, cond, x, y, out), (cond, x, y)


def test_it_prints_as_one_line():
    assert str(explain(MASK, REAL, 0)).startswith("kernel w4 n:ct; 1 thread; stores ")
    assert repr(explain(MASK, REAL, 0)).count("\n") == 0
    assert not explain(MASK, REAL, 0).steps  # a number is not converted on the way


@mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_number_of_no_size_is_taken_by_a_kernel(dtype):
    x = MASK.astype(dtype)
    for number in (np.inf, -np.inf, np.nan):
        assert explain(MASK, x, number).kernel
        assert where(MASK, x, number).tobytes() == np.where(MASK, x, number).tobytes()


def test_threads_and_stores_are_those_of_the_machine():
    script = """
import numpy as np, te_select
x = np.ones(1 << 20, "f4")
for each in (x, x[:1000]):
    found = te_select.where.explain(each > 0, each, 0)
    print(found.threads, found.past_cache)
"""
    seen = []
    for threads, least in (("1", "1000000"), ("2", "1000000"), ("2", "100000000")):
        said = f"stream_per_thread=0,stream_per_l3={least},bytes_per_thread=65536,skip=0"
        said += f",fill_per_thread=0,fill_per_l3={least}"
        variables = {"TE_SELECT_NUM_THREADS": threads, "TE_SELECT_PROFILE": said}
        seen.append(python(script, PYTHONPATH=path_of_python(), **variables).split())
    assert seen == [
        ["1", "True", "1", "False"],
        ["2", "True", "1", "False"],
        ["2", "False", "1", "False"],
    ]
