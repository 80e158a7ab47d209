"""Reading tensors that other libraries pass on by DLPack."""

import weakref

import numpy as np
from pytest import raises

from te_select import ArgumentError
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.runtime.call import dlpack, operands
from tests.support import alike
from tests.support.hand_made import HandMade
from tests.support.runtime_standin import kernel

SAME = alike(3, 4)
COND = np.ones((3, 4), bool)
THEN = np.arange(12, dtype="f4").reshape(3, 4)
ELSE = -np.ones((3, 4), "f4")


def test_address_is_that_of_the_first_element():
    for offset, device in ((0, 3), (16, 11)):  # memory of the CPU that a GPU may read
        found = dlpack.read(HandMade(THEN, offset=offset, device=device))
        assert found.address == THEN.ctypes.data
        assert (found.shape, found.strides, found.dtype) == ((3, 4), (4, 1), (2, 32, 1))
        assert not found.readonly
    assert dlpack.read(HandMade(THEN, data=0, offset=16)).address == 0
    assert not dlpack.read(HandMade(THEN, flags=2)).readonly  # it is a copy


def test_version_that_is_not_known_is_refused():
    then = HandMade(THEN, flags=0)
    for major in (0, 2):
        then.managed.major = major
        with raises(ArgumentError, match=rf"HandMade .*DLPack {major}\.0 is not understood"):
            kernel(SAME)(COND, then, ELSE)


def test_what_is_no_capsule_is_refused():
    class Wrong(HandMade):
        def __dlpack__(self, **options):
            return "capsule"

    with raises(ArgumentError, match="then is a Wrong that __dlpack__ does not hand over"):
        kernel(SAME)(COND, Wrong(THEN), ELSE)


class Fresh:
    """Hands over new memory at each call, which only the capsule keeps."""

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **options):
        array = THEN.copy()
        self.memory = weakref.ref(array)
        return array.__dlpack__(**options)


def test_view_keeps_what_only_the_capsule_keeps():
    value = Fresh()
    view = operands.describe(value, "then", ELEMENT_TYPES["float32"], (3, 4), {}).value
    assert value.memory() is not None
    assert view.tobytes() == THEN.tobytes()
    del view
    assert value.memory() is None
