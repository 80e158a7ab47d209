"""The types of tensors that the extension calls the family's function with."""

import struct
from ctypes import addressof, c_char_p, c_void_p, create_string_buffer, py_object, pythonapi

from pytest import mark, raises

from te_select.operator import family
from te_select.runtime.call import _extension as extension
from te_select.selecting.kernels import library


@mark.parametrize("arguments", [(), (1,), (1, 2), (0, int), (1, int), ("1", int)])
def test_entry_wants_an_address_and_a_type_with_an_exchange_api(arguments):
    with raises((TypeError, ValueError, AttributeError)):
        extension.tensor_entry(*arguments)


def test_exchange_api_of_another_version_is_not_used():
    """A later major version may have other members."""
    table = create_string_buffer(struct.pack("<II7Q", 2, 0, *[0] * 7))
    new = pythonapi.PyCapsule_New
    new.restype = py_object
    new.argtypes = (c_void_p, c_char_p, c_void_p)
    capsule = new(addressof(table), b"dlpack_exchange_api", None)
    kind = type("Tensor", (), {"__dlpack_c_exchange_api__": capsule})
    with raises(ValueError, match="DLPack's exchange API is of version 2"):
        extension.tensor_entry(1, kind)
    assert library.function_of_tensors(family.FUNCTION, kind) is None
