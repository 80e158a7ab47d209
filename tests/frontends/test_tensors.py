"""What is known about a tensor that is one of several."""

import pytest

from te_select.frontends.tensors import Tensor, agree, join


def test_what_is_the_same_in_every_call_stays():
    found = join([Tensor("int8", (2, "n", 1)), Tensor("int8", (3, "n", 1))])
    assert found == Tensor("int8", (None, "n", 1))


def test_ranks_and_types_that_differ_are_unknown():
    assert join([Tensor("int8", (2,)), Tensor("int8", ())]).shape is None
    assert join([Tensor("int8", (2,)), Tensor("int8")]).shape is None
    assert join([Tensor("int8", ()), Tensor("int16", ())]) == Tensor(None, ())


@pytest.mark.parametrize("constants", [(True, True), (True, False), (False, False)])
def test_tensor_is_constant_if_it_is_in_every_call(constants):
    calls = [Tensor("bool", (4,), constant=each) for each in constants]
    assert join(calls).constant == all(constants)


def test_shapes_agree_unless_ranks_or_ints_differ():
    assert agree((2, "n", None), (2, 5, "m"))
    assert not agree((2, 3), (2, 4))
    assert not agree((2,), (2, 2))
