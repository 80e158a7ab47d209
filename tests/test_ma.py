"""te_select.ma.where is numpy.ma.where: values, masks, what is shared, and errors."""

import numpy as np
import pytest

import te_select
from tests.selecting.table import EACH, SEEDS, TURNED
from tests.selecting.test_in_place import memory_of
from tests.support.neighbours import Subclass
from tests.support.where_calls import outcome, random_call

ma = te_select.ma
ATTRIBUTES = ("dtype", "shape", "fill_value", "hardmask", "sharedmask", "baseclass")


def masked(rng, operand):
    """An operand, masked now and then: here and there, everywhere or nowhere."""
    if rng.random() < 0.1:
        return np.ma.masked
    if rng.random() < 0.3:
        return operand
    share = rng.choice([0, 0.3, 1])
    given = np.ma.array(operand, mask=rng.random(np.shape(operand)) < share)
    if rng.random() < 0.2 and given.dtype.kind in "iuf":
        given.fill_value = 7
    if rng.random() < 0.2:
        given.harden_mask()
    return given


def facts(found):
    """What can be told of a result."""
    result, warned = found
    if not isinstance(result, np.ndarray):
        return repr(result), warned
    of = [repr(getattr(result, name)) for name in ATTRIBUTES]
    mask = None if result.mask is np.ma.nomask else result.mask.tolist()
    return type(result), of, mask, memory_of(result.data), warned


def check(*given):
    found = facts(outcome(ma.where, given))
    assert found == facts(outcome(np.ma.where, given)), given


@SEEDS
def test_random_calls_are_those_of_numpy(seed):
    for number in range(EACH // 4):
        rng = np.random.default_rng([seed, number])
        check(*[masked(rng, each) for each in random_call(rng, 2000)])


def test_odd_operands_are_those_of_numpy():
    record = np.ma.array([(1, 2.0), (3, 4.0)], "i4,f8", mask=[(True, False), (False, True)])
    ones = np.ma.ones(2)
    texts = np.ma.array(["", "a"], mask=[True, False])
    nothing = np.ma.array(np.ones((0, 2)), mask=True)
    for given in (
        (nothing, nothing, 1), (np.ma.masked, np.ones(0), 1),
        (nothing > 0, ones, nothing), (ones, np.ma.masked, nothing),
        (True,), (ones,), (np.ma.masked_equal([0, 1, 2], 1),), (True, 1), (True, 1, 2, 3),
        (record["f0"] > 1, record, record[::-1]), (ones, record, np.ma.masked),
        (ones, np.ma.masked, np.ma.masked), (np.ma.masked, ones, 2), (texts, 1, 2), (2, 3, ones),
        ([True, False], [1, 2], ones), (np.ones(3), ones, 1),
        (ones, TURNED.view(Subclass)[:2, 0], ones),
        (ones, np.ma.mvoid((1, 2.0), dtype="i4,f8"), record), (ones, ones, None),
    ):  # fmt: skip
        check(*given)


@pytest.mark.parametrize("share", [0, 0.5])
def test_kernels_select_values_and_masks(share):
    rng = np.random.default_rng(0)
    cond, x, y = (np.ma.array(rng.random(900), mask=rng.random(900) < share) for _ in range(3))
    expected = facts(outcome(np.ma.where, (cond > 0.5, x, y)))
    before = te_select.where.stats()
    assert facts(outcome(ma.where, (cond > 0.5, x, y))) == expected
    after = te_select.where.stats()
    assert after.calls > before.calls + 1 and after.left == before.left


def test_other_names_are_numpys():
    assert ma.masked_array is np.ma.masked_array and dir(ma) == dir(np.ma)
    with pytest.raises(AttributeError, match="nonsense"):
        ma.nonsense  # noqa: B018
    assert ma.where.__module__ == "te_select.ma" and np.ma.where is not ma.where
