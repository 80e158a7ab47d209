"""Booleans that pyarrow, polars and pandas store as bits are masks, which kernels read as bits."""

import importlib

import numpy as np
from pytest import fixture, importorskip, mark

from te_select import copyto, putmask, select, where
from te_select.selecting import bits
from tests.support.neighbours import OfItsOwnRule
from tests.support.where_calls import difference, outcome

pyarrow = importorskip("pyarrow")
polars = importorskip("polars")
pandas = importorskip("pandas")
MAKERS = {
    "pyarrow": pyarrow.array,
    "chunks": lambda v: pyarrow.chunked_array([v[:3], v[:0], v[3:]], pyarrow.bool_()),
    "polars": polars.Series,
    "polars in chunks": lambda v: polars.Series(v[:3]).append(polars.Series(v[3:])),
    "pandas": lambda v: pandas.Series(v, dtype="bool[pyarrow]"),
    "index": lambda v: pandas.Index(v, dtype="bool[pyarrow]"),
}


@fixture(params=MAKERS.values(), ids=MAKERS)
def make(request):
    return request.param


@mark.parametrize("size", [4, 7, 8, 9, 1000])
def test_every_slice_is_what_numpy_makes_of_it(make, size):
    values = np.random.default_rng(size).random(size) < 0.5
    column = make(values)
    for start in range(min(size, 10)):
        for end in range(start + 1, size + 1)[-10:]:
            found = bits.unpacked(*bits.find(column[start:end]))
            assert found.dtype == bool and found.tolist() == values[start:end].tolist()


def test_calls_take_them(make):
    values = np.random.default_rng(0).random((2, 900)) < 0.5
    x = np.arange(900.0)
    column = make(values[0])
    expected = np.where(values[0], x, 3.0)
    out = np.empty(900)
    found = where(column, x, 3.0)
    assert difference((found, []), (expected, [])) is None
    assert where(column, x, 3.0, out=out) is out and (out == expected).all()
    assert (select([column, values[1]], [x, 5.0]) == np.select(values, [x, 5.0])).all()
    out[...] = 3
    copyto(out, x, where=column)
    putmask(out, make(values[1]), 5.0)
    assert (out == np.where(values[1], 5.0, expected)).all()


def test_value_of_an_operands_own_rule_is_returned(make):
    own = OfItsOwnRule()
    column = make([True, False])
    assert where(column, own, 1.0)[0] is np.where
    assert copyto(own, 1.0, where=column)[0] is np.copyto
    assert putmask(own, column, 1.0)[0] is np.putmask


def test_missing_values_are_what_numpy_makes_of_them(make):
    column = make([True, None, False, None])
    assert bits.find(column) is None
    given = column, np.arange(4.0), 9.0
    assert difference(outcome(where, given), outcome(np.where, given)) is None


def test_other_columns_and_values_are_left():
    kinds = pyarrow.array, polars.Series, pandas.Series, lambda v: pyarrow.chunked_array([v])
    others = [kind(values) for kind in kinds for values in ([1, 2], ["a"])]
    empty = pyarrow.array([], pyarrow.bool_())
    assert [*map(bits.find, (*others, empty, pyarrow.scalar(True), [True]))] == [None] * 11


def test_polars_goes_without_pyarrow(monkeypatch):
    monkeypatch.setattr(polars.Series, "to_arrow", lambda _: importlib.import_module("absent"))
    column = polars.Series([True, False, True])
    x = np.arange(3.0)
    assert where(column, x, 9.0).tolist() == [0, 9, 2]
