"""Operands for timing: aligned arrays, and masks of a density and a block length."""

import numpy as np
from pytest import approx, mark

from te_select import Workload
from te_select.timing.inputs import PAGE, Mask, make_operands, placed
from tests.support import flat, masked_rows
from tests.support import strategies as s


@mark.parametrize("density", [0, 1, 50, 100])
@mark.parametrize("block", [1, 64, 4096])
def test_a_mask_has_its_density_and_blocks(density, block):
    mask = Mask(density, block).draw(np.random.default_rng(0), 2000 * block + 7)
    assert mask.shape == (2000 * block + 7,)
    assert 100 * mask.mean() == approx(density, abs=5)
    whole = mask[: 2000 * block].reshape(-1, block)
    assert (whole == whole[:, :1]).all()


@mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float8_e5m2", "complex128"])
def test_operands_begin_on_a_page_and_hold_valid_values(dtype):
    workload = Workload((5, 1), (5, 3), (), dtype)
    operands = make_operands(workload, Mask())
    arrays = (operands.cond, operands.then, operands.else_, operands.out)
    assert [array.shape for array in arrays] == [(5, 1), (5, 3), (), (5, 3)]
    assert all(array.ctypes.data % PAGE == 0 for array in arrays)
    assert operands.then.dtype.name == dtype
    if dtype == "bool":
        assert operands.then.view(np.uint8).max() <= 1


def test_aligned_operands_broadcast_as_the_rule_says():
    workload = Workload((3,), (2, 3, 4), (3, 1), "int32", "pdpd", 1)
    operands = make_operands(workload, Mask())
    want = s.expected(workload, operands.cond, operands.then, operands.else_)
    assert np.array_equal(s.as_bytes(np.where(*operands.aligned())), want)


def test_sets_differ_and_a_seed_makes_the_same_again():
    workload = flat(100)
    first, again, second = (make_operands(workload, Mask(), seed) for seed in (0, 0, 1))
    for name in ("cond", "then", "else_"):
        values = [getattr(operands, name).tobytes() for operands in (first, again, second)]
        assert values[0] == values[1] != values[2]
    assert first.then.tobytes() != first.else_.tobytes()


def test_a_block_longer_than_cond_is_one_block():
    assert len(set(Mask(block=10**30).draw(np.random.default_rng(0), 100))) == 1


@mark.parametrize("ahead", [0, 64, 4160])
def test_placed_operands_begin_at_megabytes_and_out_ahead(ahead):
    given = make_operands(masked_rows(5, 3), Mask())
    moved = placed(given, ahead)
    for name in ("cond", "then", "else_", "out"):
        array = getattr(moved, name)
        assert array.ctypes.data % (1 << 20) == (ahead if name == "out" else 0)
        assert np.array_equal(array, getattr(given, name))
