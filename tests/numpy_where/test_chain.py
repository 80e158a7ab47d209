"""te_select.select does what numpy.select does, block by block."""

import os
import pickle

import numpy as np
import pytest

import te_select
from te_select.numpy_where import chain
from tests.support.neighbours import ByMethod, OfItsOwnRule, as_neighbour, conversions
from tests.support.where_calls import (
    difference,
    outcome,
    random_dtype,
    random_mask,
    random_shape,
    random_sides,
    strided,
)

select = te_select.select
CALLS = int(os.environ.get("TE_SELECT_RANDOM_CALLS", "1600"))
SEEDS = 8


def random_select(rng, most=20_000):
    """The arguments of a call: condlist, choicelist and default."""
    shape, count = random_shape(rng, most), int(rng.integers(1, 6))
    conds = [random_mask(rng, shape, odd=0.02) for _ in range(count)]
    dtypes = random_dtype(rng), np.dtype(str(rng.choice(["f2", "f4", "f8", "i4", "u1", "c8"])))
    *choices, default = random_sides(rng, shape, dtypes[rng.random() < 0.6], count + 1)
    return conds, choices, default if rng.random() < 0.6 else 0


@pytest.fixture
def by_kernels(monkeypatch):
    """Take NumPy's own function away while ours runs."""

    def call(*args, **options):
        with monkeypatch.context() as patch:
            patch.setattr(chain, "numpy_select", None)
            return select(*args, **options)

    return call


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_calls_are_those_of_numpy(seed, monkeypatch):
    for number in range(CALLS // SEEDS):
        rng = np.random.default_rng([seed, number])
        monkeypatch.setattr(chain, "BLOCK", int(rng.choice([64, 1024, 1 << 18])))
        given = random_select(rng)
        expected = outcome(np.select, given)
        found = difference(outcome(select, given), expected)
        assert found is None, f"random_select({[seed, number]}): {found}"
        if isinstance(expected[0], np.ndarray):
            check_out(rng, given, expected)


def check_out(rng, given, expected):
    conds, choices, default = given
    sides = [*choices, default]
    out = strided(rng, expected[0].shape, expected[0].dtype)
    alike = [k for k, each in enumerate(sides) if np.asarray(each).shape == out.shape]
    alike = [k for k in alike if getattr(sides[k], "dtype", None) == out.dtype]
    if alike and rng.random() < 0.5:  # out is an operand, which is read
        out[...] = sides[alike[-1]]
        sides[alike[-1]] = out
    given = conds, sides[:-1], sides[-1]
    result, warned = outcome(lambda *args: select(*args, out=out), given)
    assert result is out
    assert difference((np.asarray(out).copy("C"), warned), expected) is None


def test_kernels_serve_numbers_arrays_and_two_types(by_kernels):
    rng = np.random.default_rng(0)
    x, small = rng.random((300, 70), np.float32), rng.integers(0, 99, (300, 70), np.int8)
    conds = [x < 0.2, x[:1] < 0.4, x > 0.9]
    for choices, default in (
        ([x, x + 1, x + 2], 0),
        ([1.5, 2, x[:, :1]], x),
        ([1, 2, 3], -1),
        ([small, x, 3], np.nan),
        ([small, small, small], np.float64(7)),
        ([x, [1.0] * 70, np.float32(2)], 0),
    ):
        found = by_kernels(conds, choices, default)
        assert difference((found, []), (np.select(conds, choices, default), [])) is None


@pytest.mark.parametrize("default", [np.nan, 1e300, -1, 2**63])
def test_number_that_does_not_fit_is_numpys(default):
    cond, x = np.array([True, False]), np.ones(2, "f4")
    for values in (x, np.ones(2, "u1"), np.ones(2, "i1")):
        for given in (([cond], [values], default), ([cond, cond], [values, default], 0)):
            assert difference(outcome(select, given), outcome(np.select, given)) is None


def test_signalling_nan_warns_only_if_it_is_selected():
    nan = np.full(9, 0x7F800001, np.uint32).view("f4")
    for cond in (np.ones(9, bool), np.zeros(9, bool)):
        given = [cond, cond], [nan, np.ones(9)], 0
        assert difference(outcome(select, given), outcome(np.select, given)) is None


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_out_that_is_read_is_as_if_copied(place, monkeypatch):
    monkeypatch.setattr(chain, "BLOCK", 64)
    rng = np.random.default_rng(place)
    memory = rng.random(1000)
    sides = [rng.random(900) for _ in range(4)]
    sides[place] = memory[50:950]
    conds = [rng.random(900) < 0.3 for _ in range(3)]
    for shift in (50, 40, 57):
        out = memory.copy()[shift : shift + 900]
        sides[place] = out.base[50:950]
        expected = np.select(conds, sides[:3], sides[3])
        assert select(conds, sides[:3], sides[3], out=out) is out
        assert (out == expected).all()


@pytest.mark.parametrize(
    "out, error, match",
    [
        (np.zeros(3), ValueError, r"out has shape \(3,\); expected \(2,\)"),
        (np.zeros(2, "f4"), TypeError, "out has element type float32; expected float64"),
        ([0.0, 0.0], TypeError, "out is a list"),
        (np.broadcast_to(np.zeros(1), (2,)), ValueError, "read-only"),
    ],
)
def test_out_of_another_kind_shape_or_type_is_refused(out, error, match):
    with pytest.raises(error, match=match):
        select([np.array([True, False])], [np.ones(2)], 2.0, out=out)
    assert not np.any(out)


def test_operands_are_converted_once():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        conds, choices, default = random_select(rng, 300)
        held = [ByMethod(np.asarray(each)) for each in (*conds, *choices, default)]
        given = held[: len(conds)], held[len(conds) : -1], held[-1]
        expected = outcome(np.select, given)
        before = conversions(held)
        assert difference(outcome(select, given), expected) is None
        assert conversions(held) == [2 * count for count in before]


def test_operands_of_neighbours_are_served(by_kernels):
    rng = np.random.default_rng(0)
    x = rng.random(900)
    given = [as_neighbour(rng, x < 0.5)], [as_neighbour(rng, x, "masked")], 0
    assert difference((by_kernels(*given), []), (np.select([given[0][0]], [x]), [])) is None


def test_rule_of_an_operand_decides():
    own, cond = OfItsOwnRule(), np.ones(3, bool)
    for given in (([own], [1.0]), ([cond, cond], [cond, own])):
        assert select(*given)[0] is np.select


def test_select_is_a_function_like_others():
    assert pickle.loads(pickle.dumps(select)) is select
    assert select.__doc__ and select.__module__.startswith("te_select")
