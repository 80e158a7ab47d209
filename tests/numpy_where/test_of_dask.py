"""te_select.where of dask arrays is dask.array.where, whose blocks kernels select."""

import pickle

import numpy as np
import pytest

import te_select
from te_select.errors import ArgumentError
from tests.support.neighbours import OfItsOwnRule
from tests.support.where_calls import difference, random_mask, random_shape, random_sides

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
where = te_select.where


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def same(found, expected):
    facts = [(type(each), each.dtype, each.shape, each.chunks) for each in (found, expected)]
    assert facts[0] == facts[1]
    one, other = found.compute(), expected.compute()
    assert type(one) is type(other) and difference((one, []), (other, [])) is None


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_calls_are_those_of_dask(seed):
    rng = np.random.default_rng(seed)
    shape, dtype = random_shape(rng, 2000), np.dtype(str(rng.choice(["f4", "i8", "u1", "c8"])))
    given = [random_mask(rng, shape, odd=0), *random_sides(rng, shape, dtype)]
    places = rng.permutation(3)[: rng.integers(1, 4)]
    for place in places:
        if isinstance(given[place], np.ndarray):
            chunks = tuple(int(rng.integers(1, n + 1)) if n else 0 for n in given[place].shape)
            given[place] = da.from_array(given[place], chunks=chunks)
    if not any(isinstance(each, da.Array) for each in given):
        given[0] = da.from_array(np.asarray(given[0]))
    try:
        expected = np.where(*given)  # which calls da.where
    except Exception as error:
        with pytest.raises(type(error)):
            where(*given)
        return
    same(where(*given), expected)


def test_blocks_are_selected_by_kernels_when_they_are_computed(monkeypatch):
    x = da.random.default_rng(0).random((400, 300), chunks=(100, 150))
    before = where.stats()
    found = where(x > 0.5, x, 0.0)
    assert where.stats().elements - before.elements < 10  # of samples, for the type
    expected = da.where(x > 0.5, x, 0.0).compute()
    monkeypatch.delattr(np, "where")
    assert (found.compute() == expected).all()
    assert where.stats().elements - before.elements >= x.size


def test_calls_without_sides_or_with_one_cond_are_those_of_dask():
    x = da.arange(10, chunks=3)
    assert where(x > 6)[0].compute().tolist() == [7, 8, 9]
    same(where(True, x, 2.5), da.where(True, x, 2.5))
    with pytest.raises(ValueError, match="both or neither"):
        where(x > 6, x)


def test_dataarray_beside_it_is_taken_as_by_dask():
    xarray = pytest.importorskip("xarray")
    x = da.random.default_rng(0).random((40, 30), chunks=10)
    labelled = xarray.DataArray(x, dims=("a", "b"))
    same(where(x > 0.5, labelled, 0), da.where(x > 0.5, labelled, 0))


def test_rule_of_another_library_decides():
    own = OfItsOwnRule()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(da.Array, "__array_function__", lambda *_: NotImplemented)
        assert where(da.ones(3) > 0, own, 1.0)[0] is np.where


def test_result_is_named_by_its_operands_and_can_be_pickled():
    x = da.from_array(np.arange(9.0), chunks=4)
    first, again, other = (where(x > 3, x, side) for side in (1.0, 1.0, 2.0))
    assert first.name == again.name != other.name
    assert pickle.loads(pickle.dumps(first)).compute().tolist() == first.compute().tolist()


def test_out_is_refused():
    x = da.ones(3)
    for out in (np.empty(3), da.ones(3)):
        with pytest.raises(ArgumentError, match="lazy"):
            where(x > 0, x, 1.0, out=out)
    assert te_select.where.explain(x > 0, x, 1.0).left == "tensors of dask"


def test_numpys_where_may_be_replaced(monkeypatch):
    x = da.arange(10, chunks=3)
    monkeypatch.setattr(np, "where", where)
    assert where(x > 6)[0].compute().tolist() == [7, 8, 9]
    assert np.where(True, x, 2.5).dtype == np.float64
    assert da.where(x > 6, x, 0).sum().compute() == 24
    assert where(np.ones(3), OfItsOwnRule(), 1.0)[0].__name__ == "where"


def test_select_of_them_is_numpys():
    x = da.ones(3, chunks=2)
    same(te_select.select([x > 0], [x]), np.select([x > 0], [x]))
