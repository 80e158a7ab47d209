"""A workload's line, read without TVM, compared with TVM and the compiler."""

import base64
import json
import random

import pytest
from tvm import IRModule
from tvm.s_tir import meta_schedule as ms

from te_select import SelectError, Workload
from te_select.operator.access import access_pattern
from te_select.operator.definition import definition
from te_select.records import log, workload_line

DTYPES = ("int8", "float16", "float32", "complex64", "complex128", "bool", "float8_e5m2")
RULES = ("multidirectional", "numpy", "pdpd", "none")


def line_of(workload, folder):
    """The line that MetaSchedule writes, and the arguments that it takes from the function."""
    mod = IRModule({"main": definition(workload)})
    (folder / log.WORKLOADS).unlink(missing_ok=True)
    (folder / log.RECORDS).unlink(missing_ok=True)
    ms.database.JSONDatabase(work_dir=str(folder)).commit_workload(mod)
    arguments = ms.arg_info.ArgInfo.from_prim_func(mod["main"])
    return (folder / log.WORKLOADS).read_text().rstrip("\n"), tuple(
        (str(each.dtype), tuple(map(int, each.shape))) for each in arguments
    )


def some_workloads(count, seed=0):
    """Workloads of small dims, among them unit and empty ones, under every rule."""
    chance = random.Random(seed)
    while count:
        out = [chance.choice([1, 1, 2, 2, 3, 4, 0, 7]) for _ in range(chance.randrange(5))]
        rule = chance.choice(RULES)
        shapes = [
            [dim if chance.random() < 0.6 else 1 for dim in out][chance.choice([0, 0, 0, 1, 2]) :]
            for _ in range(3)
        ]
        axis = chance.choice([-1, 0, 1]) if rule == "pdpd" else -1
        try:
            yield Workload(*shapes, chance.choice(DTYPES), rule, axis)
        except SelectError:
            continue
        count -= 1


@pytest.mark.parametrize("seed", range(4))
def test_pattern_and_arguments_are_those_of_the_workload(tmp_path, seed):
    for workload in some_workloads(25, seed):
        text, arguments = line_of(workload, tmp_path)
        read = workload_line.read(text)
        assert (read.key, read.arguments) == (access_pattern(workload).key, arguments), workload
        assert read.text == text


def test_workloads_that_differ_in_axis_alone_are_told_apart(tmp_path):
    first, last = (Workload((), (4, 4), (4,), "int8", "pdpd", axis) for axis in (0, 1))
    read = [workload_line.read(line_of(workload, tmp_path)[0]) for workload in (first, last)]
    assert read[0].arguments == read[1].arguments
    assert [each.key for each in read] == ["w1_4te_4t", "w1_4t_4te"]


def recoded(text, change):
    digest, encoded = json.loads(text)
    return json.dumps([digest, base64.b64encode(change(base64.b64decode(encoded))).decode()])


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-40],
        lambda text: "<<<<<<< HEAD",
        lambda text: "[1,2]",
        lambda text: '["1","!"]',
        lambda text: recoded(text, lambda data: data[:-1]),
        lambda text: recoded(text, lambda data: data + b" "),
        lambda text: recoded(text, lambda data: data.replace(b'"then_b"', b'"other_"')),
        lambda text: recoded(text, lambda data: data.replace(b'"nodes"', b'"sedon"')),
    ],
)
def test_line_that_is_no_select_is_refused(tmp_path, damage):
    text, _ = line_of(Workload((5,), (5,), (5,)), tmp_path)
    with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
        workload_line.read(damage(text))
