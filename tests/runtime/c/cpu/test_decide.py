"""How calls are run: what the environment may say, and how many tasks a call has."""

import ctypes
from math import prod

import pytest
from hypothesis import given

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.runtime.call import loading
from tests.operator.test_access import workloads
from tests.support import c_half, python
from tests.support.runtime_standin import library_of

SHAPE = (64, 64)
SQUARE = Workload(SHAPE, SHAPE, SHAPE)


REFUSED = """
    import os, shutil, sys, tvm_ffi
    import numpy as np
    from te_select.errors import ArgumentError
    from te_select.runtime.call import loading
    path, name, variable, value = sys.argv[1:]
    os.environ[variable] = value
    try:
        loading.load(path)
    except ArgumentError as error:
        print(error)
    # As a C++ program does, without te_select.load.
    copy = shutil.copy(path, path[:-3] + "-copy.so")
    out = np.full((64, 64), 7, "f4")
    select = tvm_ffi.load_module(copy).get_function(name)
    try:
        select(np.ones((64, 64), bool), np.ones((64, 64), "f4"), np.ones((64, 64), "f4"), out)
    except ValueError as error:
        print(error)
    assert (out == 7).all()
"""


@pytest.mark.parametrize(
    "variable, said, values",
    [
        ("TE_SELECT_NUM_THREADS", " is '", ["x", "000", "+3", "1e3", "3x", " ", "\u0664"]),
        ("TE_SELECT_PROFILE", ": '", ["skip=7"]),
    ],
)
def test_variable_that_is_wrong_is_refused_at_load_and_by_calls(variable, said, values):
    parallel = library_of(SQUARE, bytes_per_thread=1024)
    name = loading.load(parallel).workload.name
    for value in values:
        at_load, calling = python(REFUSED, parallel, name, variable, value).splitlines()
        shown = f"{variable}{said}{value}'" if value.isascii() else f"{variable}{said}"
        assert shown in at_load and shown in calling
        assert "expected a" in at_load


NAMES = "cond_sampling", "cpu_model", "pool", "pool_cores", "pool_team", "processors", "profile"
FILES = tuple(f"cpu/{name}.c" for name in (*NAMES, "sysfs"))


@pytest.fixture(scope="module")
def half():
    path = c_half.built("decide_test.c", FILES)
    return c_half.load(path, te_select_count_moved=">q", tasks_for="qi>q")


@given(workloads)
def test_bytes_of_a_call_are_those_of_its_access_pattern(half, workload):
    pattern = access_pattern(workload)
    width = workload.element.width
    if pattern.elements:
        sides = workload.then_shape, workload.else_shape, workload.out_shape
        bytes_of = prod(workload.cond_shape), *(width * prod(side) for side in sides)
        counted = half.te_select_count_moved((ctypes.c_int64 * 4)(*bytes_of))
        assert counted == pattern.bytes_moved()


def test_threads_have_equal_tasks_of_256_kb_at_most_65536(half):
    task = 1 << 18
    for moved, threads, tasks in (
        (1, 1, 1),
        (1, 4, 4),
        (5 * task - 1, 4, 4),
        (5 * task, 4, 8),
        (9 * task, 4, 12),
        (9 * task, 1, 9),
        (1 << 45, 1, 1 << 16),
        (1 << 45, 3, (1 << 16) - 1),
    ):
        assert half.tasks_for(moved, threads) == tasks
