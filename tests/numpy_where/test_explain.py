"""te_select.where.explain says what a call would do, and does nothing."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

import te_select
from tests.support.where_calls import path_of_python

where, explain = te_select.where, te_select.where.explain
RNG = np.random.default_rng(0)
F4 = RNG.random((64, 96), np.float32)
MASK = F4 > 0.5
C = np.array([True, False])


@pytest.mark.parametrize(
    "given",
    [
        (MASK, F4, F4[::-1].copy()),
        (MASK, F4, 0),
        (MASK, 0.0, F4[0]),
        (MASK[:, :1], F4, F4[:1]),
        (MASK[:, :1].copy(), F4.astype("f2"), F4.astype("f2")),
        (MASK.astype("i4"), F4, F4),
        (MASK.tolist(), F4, 0),
        (MASK[0], np.arange(96).view("M8[s]"), np.datetime64("NaT")),
    ],
)
def test_kernel_is_the_one_that_the_call_takes(given):
    before = where.stats()
    found = explain(*given)
    assert where.stats() == before
    where(*given)
    after = where.stats()
    assert (after.calls - before.calls, found.left) == (1, "")
    kernels = {name for name, n in after.kernels.items() if n != before.kernels.get(name)}
    assert kernels == {found.kernel} - {"tiles", "fill"}


def test_arrays_of_two_types_are_converted_in_pieces():
    given = (np.resize(MASK, 40_000), np.resize(F4, 40_000), np.ones(40_000))
    before = where.stats().kernels
    found = explain(*given)
    assert found.steps == ("converted in pieces of 16384 elements",)
    where(*given)
    counts = where.stats().kernels
    assert counts[found.kernel] - before.get(found.kernel, 0) == 40_000


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    ("left", "given"),
    [
        ("element type", (C, [1.0, 2.0], None)),
        ("element type", (C, F4.astype(">f4")[0, :2], 1.0)),
        ("number", (C, F4[0, :2], 1e300)),
        ("promotion", (C, np.ones(2, "M8[s]"), np.ones(2, "M8[ms]"))),
        ("shape", (C[:0], F4[0, :0], 1.0)),
        ("shape", (C, F4[0, :3], 1.0)),
    ],
)
def test_reason_is_that_of_the_call(left, given):
    found = explain(*given)
    assert (found.left, found.kernel) == (left, "")
    assert str(found).startswith(f"left: {left}")
    before = where.stats().left.get(left, 0)
    try:
        where(*given)
    except ValueError:
        assert left == "shape"
    assert where.stats().left[left] == before + 1


def test_rule_of_an_operands_type_decides():
    class Own(np.ndarray):
        def __array_function__(self, function, types, args, kwargs):
            return "own"

    assert explain(C, np.zeros(2).view(Own), 1.0).left == "kind of operand"


@pytest.mark.parametrize("out", ["other", "x", "overlapping"])
def test_out_is_taken_in_place_or_copied_to_and_not_written(out):
    memory = np.ones(97, np.float32)
    x = memory[:96]
    target = {"other": np.zeros(96, np.float32), "x": x, "overlapping": memory[1:]}[out]
    before = target.copy()
    found = explain(MASK[0], x, 2.0, target)
    assert ("then copied to out" in found.steps) == (out == "overlapping")
    assert (target == before).all()


def test_it_prints_as_one_line():
    assert str(explain(MASK, F4, 0)).startswith("kernel w4 n:ct; 1 thread; stores ")
    assert repr(explain(MASK, F4, 0)).count("\n") == 0


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
        environment = {**os.environ, **variables, "PYTHONPATH": path_of_python()}
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seen.append(done.stdout.split())
    assert seen == [
        ["1", "True", "1", "False"],
        ["2", "True", "1", "False"],
        ["2", "False", "1", "False"],
    ]


@pytest.mark.parametrize("out", [np.empty(3), np.empty(4, np.int32), [0.0] * 4])
def test_out_that_the_call_refuses_is_refused(out):
    given = (np.ones(4, bool), np.zeros(4), np.ones(4))
    with pytest.raises((TypeError, ValueError)) as of_call:
        te_select.where(*given, out=out)
    with pytest.raises(of_call.type, match=re.escape(str(of_call.value))):
        te_select.where.explain(*given, out=out)
