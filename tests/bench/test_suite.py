"""Tests of the suite, the operands and the roof of the bench."""

from __future__ import annotations

import numpy as np
import pytest

import te_select
from te_select.bench.suite import BASELINES, DEFAULT, choose
from te_select.checking.reference import placed
from te_select.operator.access import access_pattern
from te_select.timing import roof
from te_select.timing.operands import LINE, Mask, make_operands


def test_the_suite_covers_what_it_promises() -> None:
    assert len(DEFAULT) >= 24
    assert len({entry.name for entry in DEFAULT}) == len(DEFAULT)
    assert {len(entry.workload.out_shape) for entry in DEFAULT} >= {0, 1, 2, 3, 4, 5}
    assert {entry.workload.element.width for entry in DEFAULT} == {1, 2, 4, 8, 16}
    moved = [access_pattern(entry.workload).bytes_moved() for entry in DEFAULT]
    assert min(moved) <= 1 << 10
    assert max(moved) >= 0.99 * 2**30
    assert {f"inner-{extent}" for extent in range(2, 8)} <= {entry.name for entry in DEFAULT}
    assert all(entry.why for entry in DEFAULT)
    assert set(BASELINES) <= set(DEFAULT)


def test_a_glob_chooses_workloads() -> None:
    assert [entry.name for entry in choose(DEFAULT, "rows-[48]*")] == ["rows-4096", "rows-8"]
    with pytest.raises(ValueError, match="matches no workload; expected a glob over scalar"):
        choose(DEFAULT, "x*")


@pytest.mark.parametrize("density", [0, 1, 50, 100])
@pytest.mark.parametrize("block", [1, 64, 4096])
def test_a_mask_has_its_density_and_blocks(density: float, block: int) -> None:
    mask = Mask(density, block).draw(np.random.default_rng(0), 2000 * block + 7)
    assert mask.shape == (2000 * block + 7,)
    assert 100 * mask.mean() == pytest.approx(density, abs=5)
    whole = mask[: 2000 * block].reshape(-1, block)
    assert (whole == whole[:, :1]).all()


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float8_e5m2", "complex128"])
def test_operands_begin_on_a_cache_line_and_hold_valid_values(dtype: str) -> None:
    workload = te_select.Workload((5, 1), (5, 3), (), dtype)
    operands = make_operands(workload, Mask())
    arrays = (operands.cond, operands.then, operands.else_, operands.out)
    assert [array.shape for array in arrays] == [(5, 1), (5, 3), (), (5, 3)]
    assert all(array.ctypes.data % LINE == 0 for array in arrays)
    assert operands.then.dtype.name == dtype
    if dtype == "bool":
        assert operands.then.view(np.uint8).max() <= 1


def test_aligned_operands_broadcast_as_the_rule_says() -> None:
    workload = te_select.Workload((3,), (2, 3, 4), (3, 1), "int32", "pdpd", 1)
    operands = make_operands(workload, Mask())
    want = np.where(*placed(workload, operands.cond, operands.then, operands.else_))
    np.testing.assert_array_equal(np.where(*operands.aligned()), want)


def test_merged_operands_have_an_axis_for_each_loop_they_move_along() -> None:
    workload = te_select.Workload((2, 1, 3), (2, 5, 3), (5, 1), "complex128")
    pattern, arrays = make_operands(workload, Mask()).merged()
    assert [loop.movers for loop in pattern.loops] == ["ct", "te", "ct", "te"]
    assert [array.shape for array in arrays] == [(2, 3), (2, 5, 3, 2), (5, 2), (2, 5, 3, 2)]
    assert [array.dtype.itemsize for array in arrays] == [1, 8, 8, 8]


@pytest.mark.parametrize("name", ["copy", "select"])
@pytest.mark.parametrize("stream", [0, 1])
def test_a_probe_does_the_work_it_is_timed_for(name: str, stream: int) -> None:
    elements = 5 * LINE
    memory = roof.probe_memory(name, elements)
    for k, array in enumerate(memory[-3:]):
        array[...] = np.arange(elements) + 1000 * k
    roof.runner(name, [memory], elements, stream, 2)(1)
    want = np.where(memory[0] != 0, *memory[1:3]) if name == "select" else memory[0]
    np.testing.assert_array_equal(memory[-1], want)


def test_probes_move_about_as_many_bytes_as_the_workload() -> None:
    for probe in roof.probes(1_000_000, 3).values():
        assert probe.bytes == pytest.approx(1_000_000, rel=0.01)
        probe.call()
