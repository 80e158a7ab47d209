"""te_select.select does what numpy.select does, block by block."""

from unittest.mock import Mock

import numpy as np
from pytest import mark, raises

import te_select
from te_select.selecting import numpy_functions
from tests.selecting.table import EACH, SEEDS, check_out
from tests.selecting.test_in_place import ROUNDED_TWICE
from tests.support.neighbours import ByMethod, OfItsOwnRule, conversions
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


def random_select(rng, most=20_000):
    """The arguments of a call: condlist, choicelist and default."""
    shape = random_shape(rng, most)
    count = int(rng.integers(1, 6))
    conds = [random_mask(rng, shape, odd=0.02) for _ in range(count)]
    number = np.dtype(str(rng.choice(["f2", "f4", "f8", "i4", "u1", "c8"])))
    dtype = number if rng.random() < 0.6 else random_dtype(rng)
    *choices, default = random_sides(rng, shape, dtype, count + 1)
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
            check_some_out(rng, given, expected)


def check(given, name="select"):
    found, expected = (outcome(getattr(each, name), given) for each in (te_select, np))
    assert difference(found, expected) is None, given


def check_some_out(rng, given, expected):
    conds, choices, default = given
    sides = [*choices, default]
    out = strided(rng, expected[0].shape, expected[0].dtype)
    kind = out.dtype, out.shape
    alike = [k for k, x in enumerate(sides) if (getattr(x, "dtype", 0), np.shape(x)) == kind]
    for place in alike[-1:]:  # out is an operand, which is read
        out[...] = sides[place]
        sides[place] = out
    check_out(select, (conds, sides[:-1], sides[-1]), out, expected)


def test_kernels_serve_numbers_arrays_and_several_types(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.random((300, 70), np.float32)
    small = rng.integers(0, 99, (300, 70), np.int8)
    conds = [x < 0.2, x[:1] < 0.4, ByMethod(x > 0.9)]
    for given in (
        (conds, [x, x + 1, x + 2], 0),
        (conds, [1, 2, 3], -1),
        (conds, [small, x, 3], np.nan),
        (conds, [small, ByMethod(small), small], np.float64(7)),
        (conds, [x, [1.0] * 70, np.float32(2)], 0),
        ([x < 0.2] * 300, [x] * 300, 0),  # more than C takes at once
    ):
        expected = np.select(*given)
        with monkeypatch.context() as patch:
            patch.setattr("te_select.selecting.numpy_functions.numpy_select", None)
            assert difference((select(*given), []), (expected, [])) is None


@mark.parametrize("dtype", ["i1", "f2", "f4", "c8", "c16"])
@mark.parametrize("elements", [1, 4097, 300_001])
def test_contiguous_arrays_are_one_call_of_c(dtype, elements, monkeypatch):
    rng = np.random.default_rng(elements)
    conds = [rng.random((1, elements)) < 0.3 for _ in range(3)]
    sides = list(rng.integers(0, 99, (3, elements)).astype(dtype))
    te_select.where(conds[0], sides[0], sides[1])  # loads the kernels
    monkeypatch.setattr("te_select.selecting.numpy_functions._in_place", None)
    for choices in (sides, [sides[0], 5, sides[1][:1]], [1, 2, sides[2]]):
        for default in (7, sides[1]):
            before = te_select.where.stats()
            expected = np.select(conds, choices, default)
            assert difference((select(conds, choices, default), []), (expected, [])) is None
            now = te_select.where.stats()
            assert (now.calls - before.calls, now.elements - before.elements) == (3, 3 * elements)


@mark.parametrize("shape", [(300, 70), (3, 5000), (2, 3, 7000), (9000,)])
def test_blocks_cover_a_shape_and_have_at_most_so_many_elements(shape):
    whole = np.empty(shape, bool)
    sizes = [whole[part].size for part in numpy_functions._parts(shape, 4096)]
    assert max(sizes) <= 4096 and sum(sizes) == whole.size


@mark.parametrize("value", [np.nan, 1e300, -1, 2**63, 2**70, "signalling"])
def test_value_that_does_not_fit_is_numpys_if_it_is_selected(value):
    if value == "signalling":
        value = np.full(2, 0x7F800001, np.uint32).view("f4")
    for values in (np.ones(2, dtype) for dtype in ("f4", "f8", "u1", "i1", "?", "m8[s]")):
        for cond in np.array([[True, False], [True, True], [False, False]]):
            for given in (([cond], [values], value), ([cond, cond], [value, values], 0)):
                check(given)


@mark.parametrize("place", range(4))
@mark.parametrize("shift", [40, 50, 57])
def test_out_that_is_read_is_as_if_copied(place, shift, monkeypatch):
    monkeypatch.setattr("te_select.selecting.numpy_functions.BLOCK", 64)
    rng = np.random.default_rng(place)
    memory = rng.random(1000)
    sides = list(rng.random((4, 900)))
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
        expected = outcome(np.select, given)
        before = conversions(held)
        assert difference(outcome(select, given), expected) is None
        assert conversions(held) == [2 * count for count in before]
    assert select([OfItsOwnRule()], [1.0])[0] is np.select
    assert select([np.ones(3, bool)], [OfItsOwnRule()])[0] is np.select


def test_ints_that_round_twice_are_rounded_as_numpy_does():
    x = np.zeros(4, "f4")
    conds = [np.array([True, False] * 2)]
    for number in ROUNDED_TWICE:
        for given in ((conds, [number], x), (conds, [x], number), (conds, [number], 0.5)):
            check(given)
        for given in ((conds[0], x, number), (conds[0], number, x)):
            check(given, "where")


@mark.parametrize("late", [0, 700])
def test_out_is_as_it_was_if_a_conversion_raises(late, monkeypatch):
    """A signalling NaN among elements that are converted block by block, of the first or a late."""
    monkeypatch.setattr("te_select.selecting.numpy_functions.BLOCK", 64)
    choice = np.zeros(900, "f4")
    choice.view("u4")[late] = 0x7F800001
    conds = [np.arange(900) % 2 == 0, np.arange(900) % 3 == 0]
    for of_out in ("default", "choice", "neither"):
        out = np.arange(900.0)
        sides = [choice, out if of_out == "choice" else np.ones(900)]
        default = out if of_out == "default" else 5.0
        before = out.copy()
        with np.errstate(invalid="raise"), raises(FloatingPointError):
            select(conds, sides, default, out=out)
        assert out.tobytes() == before.tobytes(), of_out


def test_result_is_made_in_out_if_nothing_is_converted_before(monkeypatch):
    """Recorded by where the kernels write."""
    written = []
    conds = [np.array([True, False, True])]
    plan = ("none", None, 3, False, False, (-1, -1, -1), 0, 0)
    monkeypatch.setattr(numpy_functions, "extension", Mock(wraps=numpy_functions.extension))
    monkeypatch.setattr("te_select.selecting.numpy_functions.extension.plan", lambda *_: plan)
    monkeypatch.setattr("te_select.selecting.numpy_functions.extension.TAKEN", "none")

    def in_blocks(_pairs, _default, out, elements):
        assert elements == 3 * numpy_functions.BLOCK // out.itemsize  # of three threads
        written.append(out)

    monkeypatch.setattr("te_select.selecting.numpy_functions._in_blocks", in_blocks)
    f8, f4 = np.arange(3.0), np.arange(3, dtype="f4")
    for choice, default, fits in (
        (f8, 0, True),
        (f8, f8 + 1, True),
        (f4, f8 + 1, False),  # NumPy warns of a signalling NaN, so a conversion may raise
        (f8, f4, False),
        (np.arange(3), f8 + 1, True),
        (f8, np.arange(3), True),
        (1.5, f8, True),
    ):
        out = np.empty(3)
        select(conds, [choice], default, out=out)
        assert (written.pop() is out) == fits, (choice, default)
    for out in (np.empty(4), np.empty((3, 1)), np.empty(3, "f4")):
        with raises((ValueError, TypeError)):
            select(conds, [f8], 0, out=out)
        assert written.pop() is not out
    select(conds, [f8], default=(out := np.empty(3)), out=out)
    assert written.pop() is out  # the default is read where it is replaced
    select(conds, [out], 0, out=out)
    assert written.pop() is not out
