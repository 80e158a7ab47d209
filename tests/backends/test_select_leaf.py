"""A leaf that is not exactly a Select is refused by every lowering, and never misread."""

import functools
import re

import tvm_ffi
from pytest import mark, param, raises
from tvm import s_tir, te, tirx
from tvm.tirx import Select

from te_select import SelectError, Workload
from te_select.backends.cpu import lowering as cpu_lowering
from te_select.backends.cuda import lowering as cuda_lowering
from te_select.backends.select_leaf import steps_of
from te_select.operator.access import access_pattern
from te_select.schedules.cpu import schedule as cpu
from te_select.schedules.cuda import schedule as cuda
from te_select.schedules.leaf import rows_left
from tests.support import alike, flat
from tests.support.leaves import CONFIGS, PATTERN, SIZE, right, scheduled

on_the_cpu = functools.partial(cpu_lowering.lower, target=None)
LOWERINGS = [
    param(cpu, on_the_cpu, id="cpu"),
    param(cuda, cuda_lowering.lower, id="cuda"),
]
ZERO = tirx.const(0, "uint8")
WRONG_VALUES = {
    "greater": lambda c, t, e, i: Select(c[i] > ZERO, t[i], e[i]),
    "equal": lambda c, t, e, i: Select(c[i].equal(ZERO), t[i], e[i]),
    "not one": lambda c, t, e, i: Select(c[i] != tirx.const(1, "uint8"), t[i], e[i]),
    "negated": lambda c, t, e, i: Select(tirx.Not(c[i] != ZERO), t[i], e[i]),
    "of a sum": lambda c, t, e, i: Select(c[i] + c[i] != ZERO, t[i], e[i]),
    "of a cast": lambda c, t, e, i: Select(
        c[i].astype("int32") != tirx.const(0, "int32"), t[i], e[i]
    ),
    "changed side": lambda c, t, e, i: Select(c[i] != ZERO, t[i] + e[i], e[i]),
    "changed other side": lambda c, t, e, i: Select(c[i] != ZERO, t[i], e[i] + e[i]),
    "if": lambda c, t, e, i: tirx.if_then_else(c[i] != ZERO, t[i], e[i]),
    "nested": lambda c, t, e, i: Select(c[i] != ZERO, right(c, t, e, i), e[i]),
    "no select": lambda c, t, e, i: t[i] + e[i],
    "reversed": lambda c, t, e, i: Select(c[SIZE - 1 - i] != ZERO, t[i], e[i]),
    "strided": lambda c, t, e, i: Select(c[i // 2] != ZERO, t[i], e[i]),
    "standing": lambda c, t, e, i: Select(c[i] != ZERO, t[0], e[i]),
    "shifted": lambda c, t, e, i: Select(c[i] != ZERO, t[(i + 1) % SIZE], e[i]),
}


@mark.parametrize("rules, lower", LOWERINGS)
def test_leaf_of_the_definition_is_taken(rules, lower):
    assert lower(scheduled(rules), "kernel", (), PATTERN)


@mark.parametrize("wrong", WRONG_VALUES)
@mark.parametrize("rules, lower", LOWERINGS)
def test_leaf_of_another_expression_is_refused(rules, lower, wrong):
    func = scheduled(rules, WRONG_VALUES[wrong])
    with raises(SelectError, match=r"has no span; expected out\[\.\.\.\] = T\.Select"):
        lower(func, "kernel", (), PATTERN)


@mark.parametrize("dtype", ["int8", "int32", "int64", "uint32", "float32", "bool"])
@mark.parametrize("rules, lower", LOWERINGS)
def test_cond_that_is_not_of_bytes_is_refused(rules, lower, dtype):
    func = scheduled(rules, cond_dtype=dtype)
    with raises(SelectError, match="cond of uint8"):
        lower(func, "kernel", (), PATTERN)


@mark.parametrize("dtype", ["int32", "float32"])
@mark.parametrize("rules, lower", LOWERINGS)
def test_elements_that_are_not_carried_as_bits_are_refused(rules, lower, dtype):
    with raises(SelectError, match="uint8, uint16, uint32, uint64"):
        lower(scheduled(rules, dtype=dtype), "kernel", (), PATTERN)


def swapped(cond, then, else_, i):
    return right(cond, else_, then, i)


def test_swapped_sides_work_on_the_cpu_and_not_on_cuda():
    """On the CPU the span gets addresses; a CUDA kernel takes its parameters."""
    text = str(on_the_cpu(scheduled(cpu, swapped), "kernel", (), PATTERN).script())
    (side,) = re.findall(r"then_data_1:.*T.address_of\((\w+)\[", text)
    assert side.startswith("else_")
    with raises(SelectError, match="has no span"):
        cuda_lowering.lower(scheduled(cuda, swapped), "kernel", (), PATTERN)


@mark.parametrize("guard", ["at most", "square"])
def test_guard_of_another_form_is_refused(guard, monkeypatch):
    """The rows that are left are counted from the guard ``scale * row + first < end``."""
    monkeypatch.setitem(CONFIGS["te_select.schedules.cpu.schedule"], "piece", 48)
    func = scheduled(cpu)
    assert on_the_cpu(func, "kernel", (), PATTERN)
    row = tirx.Var("row", "int64")
    end = tirx.IntImm("int64", SIZE)
    condition = row * row < end if guard == "square" else row <= end
    with raises(SelectError, match="has no span"):
        rows_left(condition, row)


def block_of(make, *, shapes=((8, 8),) * 3, out=(8, 8)):
    """The block of ``out[i, ...] = make(cond, then, else_, i, ...)``, before any schedule."""
    types = ("uint8", "uint32", "uint32")
    operands = [
        te.placeholder([tirx.IntImm("int64", dim) for dim in shape], dtype, name)
        for shape, dtype, name in zip(shapes, types, ("cond", "then", "else_"), strict=True)
    ]
    dims = [tirx.IntImm("int64", dim) for dim in out]
    computed = te.compute(dims, lambda *at: make(*operands, *at), name="out")
    blocks = []
    func = te.create_prim_func([*operands, computed])
    tvm_ffi.structural_walk(func.body, (s_tir.SBlock, blocks.append), order="pre")
    return next(block for block in blocks if block.name_hint == "out")


FUSED = access_pattern(alike(8, 8))
APART = access_pattern(Workload((8, 1), (8, 8), (8, 8)))


def select_of(cond, then, else_):
    return Select(cond != ZERO, then, else_)


def test_steps_are_those_of_the_indices():
    fused = block_of(lambda c, t, e, i, j: select_of(c[i, j], t[i, j], e[i, j]))
    assert set(steps_of(fused, FUSED).values()) == {((),)}
    shapes = ((8, 1), (8, 8), (8, 8))
    apart = block_of(lambda c, t, e, i, j: select_of(c[i, 0], t[i, j], e[i, j]), shapes=shapes)
    steps = steps_of(apart, APART)
    assert steps["out"] == steps["then"] == ((8,), ())
    assert steps["cond"] != steps["out"]


@mark.parametrize("transposed", ["cond", "then", "else_"])
def test_transposed_operand_of_fused_loops_is_refused(transposed):
    def make(c, t, e, i, j):
        loads = dict(cond=c[i, j], then=t[i, j], else_=e[i, j])
        return select_of(**loads | {transposed: dict(cond=c, then=t, else_=e)[transposed][j, i]})

    with raises(SelectError, match="has no span"):
        steps_of(block_of(make), FUSED)


def test_diagonal_is_refused():
    diagonal = block_of(lambda c, t, e, i: select_of(c[i, i], t[i, 0], e[i, 0]), out=(8,))
    with raises(SelectError, match="has no span"):
        steps_of(diagonal, access_pattern(flat(8)))


def test_output_that_is_written_in_columns_is_refused():
    shapes = ((8, 1), (8, 8), (8, 8))
    right = block_of(lambda c, t, e, i, j: select_of(c[i, 0], t[i, j], e[i, j]), shapes=shapes)
    store = right.body
    swapped = tirx.BufferStore(store.buffer, store.value, [*reversed(store.indices)])
    parts = (right.iter_vars, right.reads, right.writes, right.name_hint, swapped)
    with raises(SelectError, match="has no span"):
        steps_of(s_tir.SBlock(*parts), APART)
