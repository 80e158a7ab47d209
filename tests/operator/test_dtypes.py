"""Element types: their names, and what is refused."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tvm_ffi

from te_select.errors import DTypeError, SelectError
from te_select.operator.dtypes import ELEMENT_TYPES, element_type, from_dlpack_code

ALL = sorted(ELEMENT_TYPES)


def numpy_dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize("name", ALL)
def test_width_is_that_of_the_numpy_type(name: str) -> None:
    assert ELEMENT_TYPES[name].width == numpy_dtype(name).itemsize
    assert ELEMENT_TYPES[name].bits == 8 * numpy_dtype(name).itemsize


@pytest.mark.parametrize("name", ALL)
def test_numpy_and_ml_dtypes_types_name_themselves(name: str) -> None:
    assert element_type(name) is ELEMENT_TYPES[name]
    assert element_type(numpy_dtype(name)) is ELEMENT_TYPES[name]
    assert element_type(numpy_dtype(name).type) is ELEMENT_TYPES[name]


@pytest.mark.parametrize("name", ALL)
def test_torch_dtypes_name_themselves(name: str) -> None:
    torch = pytest.importorskip("torch")
    assert element_type(getattr(torch, name)) is ELEMENT_TYPES[name]


@pytest.mark.parametrize("name", ["float32", "bfloat16", "int8", "float8_e5m2"])
def test_jax_dtypes_name_themselves(name: str) -> None:
    jnp = pytest.importorskip("jax.numpy")
    assert element_type(getattr(jnp, name)) is ELEMENT_TYPES[name]


def test_python_types_name_what_numpy_reads_in_them() -> None:
    assert element_type(bool).name == "bool"
    assert element_type(float).name == "float64"


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("complex")])
def test_dlpack_code_is_the_one_tvm_ffi_knows(name: str) -> None:
    known = tvm_ffi.dtype(name)
    assert (known.type_code, known.bits) == (ELEMENT_TYPES[name].code, ELEMENT_TYPES[name].bits)


@pytest.mark.parametrize("name", ["complex64", "complex128"])
def test_dlpack_code_of_complex_types_is_five(name: str) -> None:
    assert ELEMENT_TYPES[name].code == 5  # kDLComplex; tvm-ffi has no name for them


@pytest.mark.parametrize("name", ALL)
def test_dlpack_code_and_bits_lead_back(name: str) -> None:
    found = ELEMENT_TYPES[name]
    assert from_dlpack_code(found.code, found.bits, 1) is found
    assert from_dlpack_code(found.code, found.bits, 2) is None


def test_dlpack_code_of_no_element_type_is_none() -> None:
    assert from_dlpack_code(3, 64, 1) is None
    assert from_dlpack_code(2, 128, 1) is None


@pytest.mark.parametrize(
    "dtype",
    [
        "float",
        "Float32",
        "float128",
        "string",
        "",
        None,
        object,
        str,
        "object",
        "M8[s]",
        np.dtype("M8[s]"),
        np.dtype("U4"),
        np.dtype("V8"),
        np.dtype([("re", "f4"), ("im", "f4")]),
        np.longdouble,
        ml_dtypes.int4,
        ml_dtypes.float8_e4m3fnuz,
        42,
    ],
    ids=repr,
)
def test_other_types_are_refused_with_the_list_of_known_ones(dtype: Any) -> None:
    with pytest.raises(DTypeError) as error:
        element_type(dtype)
    assert repr(dtype) in str(error.value)
    assert all(name in str(error.value) for name in ELEMENT_TYPES)
    assert isinstance(error.value, SelectError)
    assert isinstance(error.value, TypeError)


@pytest.mark.parametrize(
    ("dtype", "meant"),
    [
        ("f32", "float32"),
        ("bf16", "bfloat16"),
        ("flaot64", "float64"),
        ("half", "float16"),
        ("double", "float64"),
        ("int", "int64"),
        ("complex", "complex128"),
    ],
)
def test_nearly_right_name_is_answered_with_the_one_meant(dtype: str, meant: str) -> None:
    with pytest.raises(DTypeError, match=f"; did you mean {meant}\\?$"):
        element_type(dtype)


@pytest.mark.parametrize("name", ["int16", "float32", "complex64"])
def test_foreign_byte_order_is_refused(name: str) -> None:
    swapped = np.dtype(name).newbyteorder("S")
    with pytest.raises(DTypeError):
        element_type(swapped)


def test_torch_type_that_no_kernel_takes_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(DTypeError, match=r"torch\.qint8"):
        element_type(torch.qint8)
