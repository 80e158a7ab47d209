"""te_select.select does what numpy.select does, block by block."""

import numpy as np
import pytest

import te_select
from te_select.numpy_where import numpy_functions
from tests.numpy_where.table import EACH, SEEDS
from tests.support import where_calls as calls
from tests.support.neighbours import ByMethod, OfItsOwnRule, conversions
from tests.support.where_calls import difference, outcome

select = te_select.select


def random_select(rng, most=20_000):
    """The arguments of a call: condlist, choicelist and default."""
    shape, count = calls.random_shape(rng, most), int(rng.integers(1, 6))
    conds = [calls.random_mask(rng, shape, odd=0.02) for _ in range(count)]
    number = np.dtype(str(rng.choice(["f2", "f4", "f8", "i4", "u1", "c8"])))
    dtype = number if rng.random() < 0.6 else calls.random_dtype(rng)
    *choices, default = calls.random_sides(rng, shape, dtype, count + 1)
    return conds, choices, default if rng.random() < 0.6 else 0


@SEEDS
def test_random_calls_are_those_of_numpy(seed, monkeypatch):
    for number in range(EACH // 2):
        rng = np.random.default_rng([seed, number])
        monkeypatch.setattr(numpy_functions, "BLOCK", int(rng.choice([64, 1024, 1 << 18])))
        given = random_select(rng)
        expected = outcome(np.select, given)
        found = difference(outcome(select, given), expected)
        assert found is None, f"random_select({[seed, number]}): {found}"
        if isinstance(expected[0], np.ndarray):
            check_out(rng, given, expected)


def check_out(rng, given, expected):
    conds, choices, default = given
    sides = [*choices, default]
    out = calls.strided(rng, expected[0].shape, expected[0].dtype)
    kind = out.dtype, out.shape
    alike = [k for k, x in enumerate(sides) if (getattr(x, "dtype", 0), np.shape(x)) == kind]
    for place in alike[-1:]:  # out is an operand, which is read
        out[...] = sides[place]
        sides[place] = out
    given = conds, sides[:-1], sides[-1]
    result, warned = outcome(lambda *args: select(*args, out=out), given)
    assert result is out
    assert difference((np.asarray(out).copy("C"), warned), expected) is None


def test_kernels_serve_numbers_arrays_and_several_types(monkeypatch):
    rng = np.random.default_rng(0)
    x, small = rng.random((300, 70), np.float32), rng.integers(0, 99, (300, 70), np.int8)
    conds = [x < 0.2, x[:1] < 0.4, ByMethod(x > 0.9)]
    for given in (
        (conds, [x, x + 1, x + 2], 0),
        (conds, [1.5, 2, x[:, :1]], x),
        (conds, [1, 2, 3], -1),
        (conds, [small, x, 3], np.nan),
        (conds, [small, ByMethod(small), small], np.float64(7)),
        (conds, [x, [1.0] * 70, np.float32(2)], 0),
    ):
        expected = np.select(*given)
        with monkeypatch.context() as patch:
            patch.setattr(numpy_functions, "numpy_select", None)
            assert difference((select(*given), []), (expected, [])) is None


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "c8", "c16"])
@pytest.mark.parametrize("elements", [1, 4097, 300_001])
def test_contiguous_arrays_are_one_call_of_c(dtype, elements, monkeypatch):
    rng = np.random.default_rng(elements)
    conds = [rng.random((1, elements)) < 0.3 for _ in range(3)]
    sides = list(rng.integers(0, 99, (3, elements)).astype(dtype))
    te_select.where(conds[0], sides[0], sides[1])  # loads the kernels
    monkeypatch.setattr(numpy_functions, "_in_place", None)
    for choices in (sides, [sides[0], 5, sides[1][:1]], [1, 2, sides[2]]):
        for default in (7, sides[1]):
            before, expected = te_select.where.stats(), np.select(conds, choices, default)
            assert difference((select(conds, choices, default), []), (expected, [])) is None
            now = te_select.where.stats()
            assert (now.calls - before.calls, now.elements - before.elements) == (3, 3 * elements)
    out = sides[1].copy()[None]
    assert select(conds, sides[:1] * 3, out, out=out) is out
    assert (out == np.select(conds, sides[:1] * 3, sides[1])).all()


@pytest.mark.parametrize("shape", [(300, 70), (3, 5000), (2, 3, 7000), (9000,)])
def test_blocks_cover_a_shape_and_have_at_most_so_many_elements(shape):
    whole = np.empty(shape, bool)
    sizes = [whole[part].size for part in numpy_functions._parts(shape, 4096)]
    assert max(sizes) <= 4096 and sum(sizes) == whole.size


@pytest.mark.parametrize("value", [np.nan, 1e300, -1, 2**63, 2**70, "signalling"])
def test_value_that_does_not_fit_is_numpys_if_it_is_selected(value):
    if value == "signalling":
        value = np.full(2, 0x7F800001, np.uint32).view("f4")
    for values in (np.ones(2, dtype) for dtype in ("f4", "f8", "u1", "i1", "?", "m8[s]")):
        for cond in np.array([[True, False], [True, True], [False, False]]):
            for given in (([cond], [values], value), ([cond, cond], [value, values], 0)):
                assert difference(outcome(select, given), outcome(np.select, given)) is None


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("shift", [40, 50, 57])
def test_out_that_is_read_is_as_if_copied(place, shift, monkeypatch):
    monkeypatch.setattr(numpy_functions, "BLOCK", 64)
    rng = np.random.default_rng(place)
    memory, sides = rng.random(1000), list(rng.random((4, 900)))
    conds = [rng.random(900) < 0.3 for _ in range(3)]
    sides[place], out = memory[50:950], memory[shift : shift + 900]
    expected = np.select(conds, sides[:3], sides[3])
    assert select(conds, sides[:3], sides[3], out=out) is out
    assert (out == expected).all()


def test_operands_are_converted_once_and_their_rules_decide():
    for seed in range(20):
        conds, *choices = random_select(np.random.default_rng(seed), 300)
        held = [ByMethod(np.asarray(each)) for each in (*conds, *choices[0], choices[1])]
        given = held[: len(conds)], held[len(conds) : -1], held[-1]
        expected, before = outcome(np.select, given), conversions(held)
        assert difference(outcome(select, given), expected) is None
        assert conversions(held) == [2 * count for count in before]
    assert select([OfItsOwnRule()], [1.0])[0] is np.select
    assert select([np.ones(3, bool)], [OfItsOwnRule()])[0] is np.select
