"""Faults of one expression, planted in conversions: the tests by the recorder find each of them."""

import functools
import inspect
import os
import shutil

import pytest

from te_select.runtime import c
from tests.runtime.c.where import test_where_stages as checks
from tests.support import c_half, where_recorder
from tests.support.planted import plant_all
from tests.support.programs import new_folder

FAULTS = [
    "where_stage.c: int64_t place = (int64_t)({bit % 8 => 0}),",
    "where_stage.c: first = stage->bits + {bit / 8 => bit};",
    "where_stage.c: int64_t words = bytes < WORD ? 0 : {bytes / WORD - 1 => bytes / WORD};",
    "where_stage.c: memcpy(to + 8 * done, made, (size_t)({n - 8 * done => 8}));",
    "where_stage.c: to[i] = stage->bits[bit / 8] >> {bit % 8 => 0} & 1;",
    "where_stage.c: if ({stride == item || n == 1 => 1}) return make_contiguous",
    "where_stage.c: if (make_contiguous(stage, items, count, to + {at * width => at})) return -1;",
    "where_stage.c: from + {at * stride => at}, 0, stride",
    "where_stage.c: along.elements * width > {most => 4 * most}",
    "where_stage.c: call->strides[operand][along.axes[k]] = {stride => 0};",
    "where_block.c: if ({!is_run => 0} || memcmp(cond, cond + 1",
    "where_block.c: return *cond ? {TE_SELECT_ELSE => TE_SELECT_THEN} :",
    "where_block.c: if (made >> i & 1 && {i != unread => 1} && make_operand",
    "where_block.c: width, given, {in_place ? flags : 0 => flags}, room);",
    "where.c: most = cache / {bytes_per_element(w) => 4};",
    "where.c: w->piece.n = {row / LINE_BYTES * LINE_BYTES => row};",
    "where.c: bytes[TE_SELECT_COND] = {(bytes[TE_SELECT_COND] + 7) / 8 => bytes[TE_SELECT_COND]};",
    "where.c: int64_t flags = w->stages ? {w->flags => 0} : 0;",
]
"""A file, and what stands there with what takes its place in braces."""


@pytest.fixture(scope="module")
def path():
    """The recorder, with a variable for the fault."""
    made = new_folder()
    folder = shutil.copytree(c.FOLDER, made / "c")
    declared = made / "fault.h"
    declared.write_text("extern __attribute__((weak)) int te_select_fault;\nint te_select_fault;\n")
    plant_all(folder / "where", FAULTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(c_half, "RUNTIME", folder)
        patch.setattr(c_half, "WARNINGS", ("-include", str(declared)))
        return where_recorder.build(functools.partial(c_half.build, made))


def is_caught(path, number):
    """Whether a child with the fault fails a test, or dies."""
    if child := os.fork():
        return os.waitpid(child, 0)[1] != 0
    with pytest.MonkeyPatch.context() as patch:

        def where(**how):
            made = where_recorder.Recorder(path, patch, **how)
            made["te_select_fault"] = number
            return made

        os._exit(fails(where))


def fails(where):
    for name, check in vars(checks).items():
        wanted = list(inspect.signature(check).parameters) if name.startswith("test_") else []
        if wanted in (["alone"], ["where"]):
            try:
                check(where if wanted == ["where"] else where())
            except (Exception, pytest.fail.Exception):
                return True
    return False


def test_recorder_passes_without_a_fault(path):
    assert not is_caught(path, 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_recorder_finds_a_fault_in_conversions(path, fault):
    assert is_caught(path, FAULTS.index(fault) + 1)
