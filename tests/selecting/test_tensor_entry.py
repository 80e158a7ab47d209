"""The family's function, called with torch tensors by the extension."""

from contextlib import nullcontext

import pytest

from te_select import where
from te_select.operator import family
from te_select.selecting.kernels import library

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def entry():
    cond, x = torch.ones(3, dtype=torch.bool), torch.ones(3)
    where(cond, x, x)  # loads the kernels
    return library.function_of_tensors(family.FUNCTION, torch.Tensor)


def tensors(*shape):
    cond = torch.rand(shape) < 0.5
    return cond, torch.rand(shape), torch.rand(shape), torch.zeros(shape)


def test_what_it_cannot_take_is_refused_and_nothing_is_written(entry):
    cond, x, y, out = tensors(8)

    class Own(torch.Tensor):
        pass

    cases = [
        (cond, x, y),
        (cond, x, y, out, out),
        (cond, x, y.numpy(), out),
        (cond, x, y.as_subclass(Own), out),
        (cond, x, torch.nn.Parameter(y), out),
        (cond, x.to_sparse(), y, out),
        (cond, x, y[None], y.as_strided((1, 8), (9, 1))),
        (cond, torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), y, out),
    ]
    for given in cases:
        assert entry(*given) < 0, given
    assert not out.any()


def test_tensors_without_the_exchange_api_are_left_to_torch(monkeypatch):
    monkeypatch.setattr("te_select.selecting.torch_kernels._entry", lambda: None)
    monkeypatch.setattr("te_select.selecting.torch_kernels._entries", {})
    cond, x, y, out = tensors(300, 3)
    before = where.stats()
    for _ in range(2):
        assert torch.equal(where(cond, x, y), torch.where(cond, x, y))
        assert where(cond, x, y, out=out) is out
    assert torch.equal(out, torch.where(cond, x, y))
    assert where.stats() == before


def test_number_of_a_wider_kind_promotes_after_one_that_yields():
    cond, x, *_ = tensors(3)
    for number in (1, 1.5):
        found = where(cond, x.int(), number)
        assert torch.equal(found, torch.where(cond, x.int(), number))


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (0, 3), (0,), (4,)])
def test_out_of_another_shape_is_resized_as_torch_does(entry, shape):
    cond, x, y, _ = tensors(3)
    assert entry(cond, x, y, torch.zeros(shape)) < 0
    for given in ((cond, x, y), (cond[:1], x[:1], -1.0), (cond[0], x[0], y[0])):
        with pytest.warns(UserWarning, match="resized") if 0 not in shape else nullcontext():
            found = where(*given, out=torch.zeros(shape))
        assert torch.equal(found, torch.where(*given))
