"""Faults of one expression, planted in the C half: the oracle or a test finds each of them."""

import ctypes
import dataclasses
import functools
import inspect
import itertools
from shutil import copytree

import numpy as np
from pytest import MonkeyPatch, fixture, mark

from te_select.backends.cpu.link import FAMILY
from te_select.runtime import c
from tests.runtime.c.where import test_where_stages as checks
from tests.support import c_half, new_folder, where_recorder
from tests.support.oracle import doors_of_cpu as doors
from tests.support.oracle.cases import CASES, WALKS
from tests.support.oracle.comparison import pairs, same
from tests.support.planted import holds_in_child, plant_all

FAULTS = [
    "host.c: if ({*size < 0 => 1}) *size = extent;",
    "host.c: if (extent != want || {extent < 0 => 0})",
    "host.c: || {n > INT64_MAX / 64 => 0}",
    "host.c: return refuse_shape(r, operand, t, pair, {i => ndim}, sizes);",
    "host.c: if ({got.lanes == 1 => 1} &&",
    "host.c: (as_bits || {got.code == code => 1})",
    "host.c: {t->shape[i] != 1 => 1} && t->strides[i] != stride",
    "host.c: int64_t stride = {1 => t->shape[t->ndim - 1]};",
    "host.c: if (on_cpu && ({!device || is_value => is_value})) return 0;",
    "host.c: int on_cpu = {type == kDLCPU => 1}",
    "host.c: if ({!(address % (uint64_t)width) => 1}) return 0;",
    "host.c: r->kernel->code == {kDLComplex => kDLFloat}) width /= 2;",
    "host.c: if ({!t->data => 0}) {",
    "host.c: {__builtin_add_overflow(first, (uint64_t)memory->bytes, &end) => 0}",
    "overlap.h: return {in.end <= out.first => in.end < out.first} ||",
    "overlap.h: || {out.end <= in.first => out.end < in.first} ||",
    "host.c: == out->data && {in->count == out->count => 1}",
    "host.c: && {operand != TE_SELECT_COND => 1};",
    "host.c: for (int i = 0; i < {TE_SELECT_OUT => TE_SELECT_ELSE} && operands",
    'host.c: strcmp(kind, {"RuntimeError" => "ValueError"})',
    "plain.c: shape->dims[i] < 0 ? sizes[{-(shape->dims[i] + 1) => 0}]",
    "where/where_call.c: if ({out->shape[axis] != call->shape[axis] => 0}) return 0;",
    "where/where_call.c: if ({reach < 0 => 0}) below += reach;",
    "where/where_call.c: int same = {data == call->data[TE_SELECT_OUT] => 1} &&",
    "where/where_call.c: {strides[i] == call->strides[TE_SELECT_OUT][i] => 1};",
    "where/where_call.c: if ({step < inside => 0}) return 1;",
    "where/where_library.c: {device != kDLCPU => 0} &&",
    "where/where_library.c: t->dtype.bits != type.bits || {t->dtype.lanes != 1 => 0} ||",
    "where/where_library.c: if ({dim < 0 => 0}) return te_select_fail",
    "where/where_plan.c: nest->data[i] += stride * ({extent - 1 => extent});",
    "where/where_plan.c: ({outer->stride[i] != inner->stride[i] * inner->extent => 0}) return 0;",
    "where/where_plan.c: i == TE_SELECT_COND ? {0 => 1} : part;",
    "where/where_block.c: if (col == 0) return {row == item => 1} ? DOWN : -1;",
    "where/where_block.c: return 9 * cond + 3 * {then => else_} + else_;",
    "where/where_block.c: if ({!is_single(block, i) => 1}) continue;",
    "where/where_block.c: tile->row[i] = m > 1 ? {n * item => item} : 0;",
    "where/where_block.c: if (!failed && {!in_place => 0})",
    "where/where.c: block.m = te_select_least(block.m, {w->whole.m - m => w->whole.m - m - 1});",
    "where/where.c: ++at[k] < loop->extent ? 1 : {1 - loop->extent => -loop->extent};",
    "where/where.c: if (steps == 1) break;\n      at[k] = {0 => 1};",
    "where/where.c: w->flags = how.flags & {~TE_SELECT_SMALL => ~TE_SELECT_SKIP};",
    "cpu/decide.c: if (looks) how.flags |= {TE_SELECT_SKIP => TE_SELECT_STREAM};",
    "cpu/decide.c: if (streams) how.flags |= {TE_SELECT_STREAM => TE_SELECT_BACKWARDS};",
    "cpu/machine.h: return grain > 0 ? {2 * grain => grain} :",
    "cpu/decide.c: int64_t sides = bytes[TE_SELECT_COND] > {1 => 4096} ?",
    "cpu/decide.c: streams = (is_fill ? out : {moved => out}) >=",
    "cpu/cond_sampling.c: return !memcmp(at, at + 1, (size_t)length - {1 => length});",
]
"""A file, and what stands there with what takes its place in braces."""

PROFILE = (
    "stream_per_thread=65536,stream_per_l3=0,fill_per_thread=32768,fill_per_l3=0,fill_reads=50,"
    "bytes_per_thread=1024,skip=1,backwards=0"
)
SIZES = (64, 100, 150, 200, 2000, 4000, 5000, 6000, 8000, 9000, 60_000)
PAIRS = pairs(doors.DOORS, [*CASES, *WALKS])
np.random.default_rng(0).shuffle(PAIRS)  # every door is tried early


@fixture(scope="module")
def library(tmp_path_factory):
    """A library of the oracle, with variables for the fault and the flags of kernels."""
    folder = copytree(c.FOLDER, tmp_path_factory.mktemp("faults") / "c")
    declared = folder / "fault.h"
    declared.write_text("extern int te_select_fault, te_select_flags;\n")
    plant_all(folder, FAULTS)
    half = dataclasses.replace(
        FAMILY,
        options=(*FAMILY.options, "-include", str(declared)),
        exports=(*FAMILY.exports, "te_select_fault", "te_select_flags"),
    )
    with MonkeyPatch.context() as patch:
        patch.setattr("te_select.runtime.c.FOLDER", folder)
        patch.setattr("te_select.backends.cpu.link.FAMILY", half)
        patch.setenv("TE_SELECT_NUM_THREADS", "1")
        patch.setenv("TE_SELECT_PROFILE", PROFILE)
        yield doors.library(folder, edit=with_variables)


def with_variables(source):
    """Kernels that keep the flags which they are given."""
    return "int te_select_fault, te_select_flags;\n" + source.replace(
        "int64_t step;", "int64_t step; te_select_flags |= (int)flags;"
    )


def variable(library, name):
    return ctypes.c_int.in_dll(doors.code(library), name)


def decisions(library):
    """The flags of kernels, and what would be decided of calls without their data."""
    plan = doors.function(library, "te_select_plan")
    flags = variable(library, "te_select_flags")
    found = []
    for n, run, repeated in itertools.product(SIZES, (0, 1, 500), (False, True)):
        cond = np.arange(n) // run % 2 == 0 if run else np.ones(1, bool)
        x = np.ones(1 if repeated else n, "f4")
        out = np.empty(n, "f4")
        flags.value = 0
        doors.WHERE_ON_POOL.call(library, None, {"cond": cond, "then": x, "else_": x, "out": out})
        found += [flags.value, plan(cond.size, x.nbytes, x.nbytes, 4 * n, n, -1, -1, -1, -1, 1)]
    return found


def is_caught(library, fault=0):
    """Whether a child with the fault decides otherwise, fails a case, or dies."""
    expected = decisions(library)

    def is_right():
        variable(library, "te_select_fault").value = fault  # it may write anywhere
        return decisions(library) == expected and cases_pass(library)

    return not holds_in_child(is_right)


def cases_pass(library):
    """Whether all cases pass; an exception ends the child."""
    for door, case in (each.values for each in PAIRS):
        same(case, door, library)
    return True


def test_oracle_passes_the_c_half_without_a_fault(library):
    assert not is_caught(library)


@mark.parametrize("fault", FAULTS)
def test_oracle_finds_a_fault_in_the_c_half(library, fault):
    assert is_caught(library, FAULTS.index(fault) + 1)


STAGE_FAULTS = [
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


@fixture(scope="module")
def recorder():
    """The recorder, with a variable for the fault."""
    made = new_folder()
    folder = copytree(c.FOLDER, made / "c")
    declared = made / "fault.h"
    declared.write_text("extern __attribute__((weak)) int te_select_fault;\nint te_select_fault;\n")
    plant_all(folder / "where", STAGE_FAULTS)
    with MonkeyPatch.context() as patch:
        patch.setattr(c_half, "RUNTIME", folder)
        patch.setattr(c_half, "WARNINGS", ("-include", str(declared)))
        return where_recorder.build(functools.partial(c_half.build, made))


def is_caught_in_stage(recorder, number):
    """Whether a child with the fault fails a test, or dies."""
    with MonkeyPatch.context() as patch:

        def where(**how):
            made = where_recorder.Recorder(recorder, patch, **how)
            made["te_select_fault"] = number
            return made

        return not holds_in_child(lambda: passes(where))


def passes(where):
    """Whether all tests by the recorder pass; an exception ends the child."""
    for name, check in vars(checks).items():
        wanted = list(inspect.signature(check).parameters) if name.startswith("test_") else []
        if wanted in (["alone"], ["where"]):
            check(where if wanted == ["where"] else where())
    return True


def test_recorder_passes_without_a_fault(recorder):
    assert not is_caught_in_stage(recorder, 0)


@mark.parametrize("fault", STAGE_FAULTS)
def test_recorder_finds_a_fault_in_conversions(recorder, fault):
    assert is_caught_in_stage(recorder, STAGE_FAULTS.index(fault) + 1)
