"""Which library's tensors a call has: types that are no tensors are asked once."""

import gc
import weakref
from sys import modules
from types import ModuleType

import numpy as np
import pytest

from te_select.selecting.tensor_libraries import _no_tensors, find, of_cupy


class Column:
    pass


class Proxy:
    """It says of itself what it stands for."""

    def __init__(self, of):
        self._of = of

    @property
    def __class__(self):
        return type(self._of)


@pytest.fixture
def asked(monkeypatch):
    """The types that were compared with those of tensors."""
    seen = []

    class Kind(type):
        def __instancecheck__(cls, value):
            seen.append(type(value))
            return super().__instancecheck__(value)

    class Tensor(metaclass=Kind):
        pass

    module = ModuleType("cupy")
    module.ndarray = Tensor
    monkeypatch.setitem(modules, "cupy", module)
    _no_tensors.clear()
    return seen


def test_types_that_are_no_tensors_are_asked_once(asked):
    for _ in range(3):
        assert find(([True], Column(), np.zeros(2), None)) is None
    assert sorted(map(repr, asked)) == sorted(map(repr, (list, Column, np.ndarray)))


def test_they_are_asked_again_when_a_library_is_there(asked, monkeypatch):
    find([Column()])
    monkeypatch.delitem(modules, "cupy")
    find([Column()])
    assert asked == [Column]
    monkeypatch.setitem(modules, "cupy", ModuleType("cupy"))
    monkeypatch.setattr(modules["cupy"], "ndarray", Column, raising=False)
    assert find([Column()]) is of_cupy


def test_out_of_cupy_is_checked_and_written(monkeypatch):
    """NumPy stands for it."""
    monkeypatch.setitem(modules, "cupy", np)
    given = np.array([True, False]), np.ones(2), np.zeros(2)
    out = np.empty(2)
    assert of_cupy(*given, out=out) is out and out.tolist() == [1, 0]
    for odd in ([0, 0], np.empty(2, "f4"), np.empty((1, 2))):
        with pytest.raises((TypeError, ValueError), match="out "):
            of_cupy(*given, out=odd)


def test_proxy_is_asked_each_time(asked):
    for _ in range(2):
        assert find([Proxy([1])]) is None
    assert asked == [Proxy, Proxy]


def test_types_are_not_kept_alive(asked):
    made = type("Made", (), {})
    find([made()])
    kept = weakref.ref(made)
    assert kept in _no_tensors
    del made, asked[:]
    gc.collect()
    assert kept() is None and None not in {each() for each in _no_tensors}
