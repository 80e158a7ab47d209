"""Booleans that pyarrow, polars and pandas store as bits are masks of NumPy, unpacked at once."""

import importlib

import numpy as np
import pytest

import te_select
from te_select.numpy_where import bits
from tests.support.where_calls import difference, outcome

RNG = np.random.default_rng(0)
SIZES = (1, 7, 8, 9, 1000)


def of_pyarrow(values):
    return importlib.import_module("pyarrow").array(values)


def of_chunks(values):
    pyarrow = importlib.import_module("pyarrow")
    return pyarrow.chunked_array([values[:3], values[:0], values[3:]], pyarrow.bool_())


def of_polars(values):
    return importlib.import_module("polars").Series(values)


def of_polars_in_chunks(values):
    polars = importlib.import_module("polars")
    return polars.concat([polars.Series(values[:3]), polars.Series(values[3:])], rechunk=False)


def of_pandas(values):
    return importlib.import_module("pandas").Series(values, dtype="bool[pyarrow]")


@pytest.fixture(params=[of_pyarrow, of_chunks, of_polars, of_polars_in_chunks, of_pandas])
def make(request):
    pytest.importorskip("pyarrow")
    pytest.importorskip(request.param.__name__.split("_")[1].replace("chunks", "pyarrow"))
    return request.param


@pytest.mark.parametrize("size", SIZES)
def test_every_slice_is_what_numpy_makes_of_it(make, size):
    values = RNG.random(size) < 0.5
    column = make(values)
    for start in range(min(size, 10)):
        for end in range(start + 1, size + 1)[-10:]:
            found = bits.unpacked(column[start:end])
            assert found.dtype == bool and found.tolist() == values[start:end].tolist()
    x = RNG.random(size)
    for mask in (column, column[size // 2 :]):
        expected = np.where(mask, x[: len(mask)], 2.0)
        found = te_select.where(mask, x[: len(mask)], 2.0)
        assert found.tobytes() == expected.tobytes() and type(found) is np.ndarray
        out = np.empty_like(found)
        assert te_select.where(mask, x[: len(mask)], 2.0, out=out) is out
        assert out.tobytes() == expected.tobytes()
    assert te_select.where(column, x[:, None], 2.0).shape == (size, size)


def test_names_take_them(make):
    values, x = RNG.random(900) < 0.5, RNG.random(900)
    column, expected = make(values), np.where(values, x, 3.0)
    assert (te_select.select([column], [x], 3.0) == expected).all()
    for call in (
        lambda a: te_select.copyto(a, x, where=column),
        lambda a: te_select.putmask(a, column, x),
    ):
        written = np.full(900, 3.0)
        call(written)
        assert (written == expected).all()


def test_missing_values_are_what_numpy_makes_of_them(make):
    for values in ([True, None, False, None], [None]):
        column = make(values)
        assert bits.unpacked(column) is None
        given = column, np.arange(float(len(values))), 9.0
        assert difference(outcome(te_select.where, given), outcome(np.where, given)) is None


def test_other_columns_are_left(make):
    for values in ([], np.arange(3), ["a", "b"]):
        assert make is of_chunks or make is of_pandas or bits.unpacked(make(values)) is None
    scalar = importlib.import_module("pyarrow").scalar(True)
    assert bits.unpacked(scalar) is bits.unpacked([True]) is bits.unpacked(np.ones(3, bool)) is None


def test_polars_goes_without_pyarrow(monkeypatch):
    polars = pytest.importorskip("polars")
    monkeypatch.setattr(polars.Series, "to_arrow", lambda _: importlib.import_module("no_such"))
    column, x = polars.Series([True, False, True]), np.arange(3.0)
    assert te_select.where(column, x, 9.0).tolist() == [0, 9, 2]
