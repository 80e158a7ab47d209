"""What holds of a tensor that is one of two, and of dims that broadcast."""

from __future__ import annotations

import numpy as np
import pytest

from te_select.frontends.symbolic.expressions import UNKNOWN, symbol
from te_select.frontends.symbolic.ordering import minimum
from te_select.frontends.symbolic.tensors import (
    Sizes,
    Tensor,
    broadcast_dim,
    broadcast_dims,
    is_open,
    join,
)

A, B = symbol("a"), symbol("b")


def values(*elements):
    made = np.empty(len(elements), object)
    made[:] = elements
    return made


def joined(one, two):
    sizes = Sizes()
    return join([one, two], lambda axis, _: sizes.fresh(f"dim {axis} of x"))


@pytest.mark.parametrize(
    ("one", "two", "dtype"),
    [
        ("int64", "int64", "int64"),
        ("int64", "int32", None),
        ("int64", None, None),
        (None, "int64", None),
    ],
)
def test_element_type_is_known_where_both_have_it(one, two, dtype):
    assert joined(Tensor(one), Tensor(two)).dtype == dtype


def test_dims_that_differ_are_sizes_of_their_own():
    shape = joined(Tensor(shape=(A, 4, B)), Tensor(shape=(A, 5, A))).shape
    assert shape[0] == A
    assert is_open(shape[1])
    assert is_open(shape[2])
    assert shape[1] != shape[2]
    assert joined(Tensor(shape=(A,)), Tensor(shape=(A, A))).shape is None


def test_elements_are_the_same_where_their_types_are_too():
    one = Tensor("int64", (4,), values(1, 0, 7, A))
    two = Tensor("int64", (4,), values(True, 0.0, 7, A))
    assert joined(one, two).values.tolist() == [UNKNOWN, UNKNOWN, 7, A]


@pytest.mark.parametrize(
    ("dims", "wide"),
    [
        ((), 1),
        ((1, 1), 1),
        ((1, 4), 4),
        ((4, A), 4),
        ((4, 5), UNKNOWN),
        ((A, 1), A),
        ((A, B), UNKNOWN),
        ((A, minimum(7, A)), A),
        ((A, minimum(7, B)), UNKNOWN),
    ],
)
def test_dim_that_several_broadcast_to(dims, wide):
    assert broadcast_dim(dims) == wide


def test_shapes_are_aligned_to_the_right():
    assert broadcast_dims([(A, 1), (B,), ()]) == (A, B)
