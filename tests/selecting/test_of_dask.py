"""te_select.where of dask arrays is dask.array.where, whose blocks kernels select."""

import pickle

import numpy as np
from pytest import importorskip, mark, raises

import te_select
from te_select import ArgumentError
from tests.support.neighbours import OfItsOwnRule
from tests.support.where_calls import difference

da = importorskip("dask.array")
where = te_select.where


def check(found, expected):
    facts = [(type(each), each.dtype, each.shape, each.chunks) for each in (found, expected)]
    assert facts[0] == facts[1]
    found, expected = (each.compute(scheduler="synchronous") for each in (found, expected))
    assert difference((found, []), (expected, [])) is None


@mark.parametrize("place", range(3))
def test_call_with_one_array_of_dask_is_dasks(place):
    given = [np.arange(30) % 3 == 0, np.arange(30, dtype="i1"), np.arange(60.0).reshape(2, 30)]
    given[place] = da.from_array(given[place], chunks=7)
    check(where(*given), da.where(*given))


def test_kernels_select_blocks_when_they_are_computed(monkeypatch):
    x = da.random.default_rng(0).random((400, 300), chunks=(100, 150))
    before = where.stats()
    found = where(x > 0.5, x, 0.0)
    expected = da.where(x > 0.5, x, 0.0)
    assert where.stats().elements - before.elements < 10  # of samples, for the type
    check(found, expected)
    assert where.stats().elements - before.elements >= x.size
    assert found.name == where(x > 0.5, x, 0.0).name != where(x > 0.5, x, 1.0).name
    check(pickle.loads(pickle.dumps(found)), expected)


@mark.parametrize("numpys", [np.where, where])
def test_other_calls_are_those_of_dask_and_numpy(numpys, monkeypatch):
    x = da.arange(10, chunks=3)
    own = OfItsOwnRule()
    monkeypatch.setattr(np, "where", numpys)
    assert where(x > 6)[0].compute().tolist() == [7, 8, 9]
    check(where(True, x, 2.5), da.where(True, x, 2.5))
    check(te_select.select([x > 6], [x]), np.select([x > 6], [x]))
    for sides in ((x,), (x, None)):
        with raises(ValueError, match="both or neither"):
            where(x > 6, *sides)
    monkeypatch.setattr(da.Array, "__array_function__", lambda *_: NotImplemented)
    before = where.stats().left
    assert where(x > 6, own, 1.0)[0].__name__ == "where"
    assert sum(where.stats().left.values()) == sum(before.values()) + 1


def test_dataarray_beside_it_is_taken_as_by_dask_but_no_out():
    xarray = importorskip("xarray")
    x = da.random.default_rng(0).random((40, 30), chunks=10)
    labelled = xarray.DataArray(x, dims=("a", "b"))
    check(where(x > 0.5, labelled, 0), da.where(x > 0.5, labelled, 0))
    with raises(ArgumentError, match="lazy"):
        where(x > 0, x, 1.0, out=np.empty((40, 30)))
    assert where.explain(x > 0, x, 1.0).left == "tensors of dask"
