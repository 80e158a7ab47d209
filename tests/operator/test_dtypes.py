"""Element types: their names, and what is refused."""

import ml_dtypes
import numpy as np
import tvm_ffi
from pytest import importorskip, mark, raises, skip

from te_select import DTypeError, SelectError
from te_select.operator.dtypes import ELEMENT_TYPES, element_type, from_dlpack_code, numpy_dtype
from tests.support.edited_copy import run_with

ALL = sorted(ELEMENT_TYPES)


@mark.parametrize("name", ALL)
def test_type_is_that_of_numpy_and_of_dlpack(name):
    found = ELEMENT_TYPES[name]
    numpys = numpy_dtype(name)
    assert (found.width, found.bits) == (numpys.itemsize, 8 * numpys.itemsize)
    assert element_type(name) is element_type(numpys) is element_type(numpys.type) is found
    assert from_dlpack_code(found.code, found.bits, 1) is found
    assert from_dlpack_code(found.code, found.bits, 2) is None
    if name.startswith("complex"):
        assert found.code == 5  # kDLComplex; tvm-ffi has no name for them
    else:
        assert (tvm_ffi.dtype(name).type_code, tvm_ffi.dtype(name).bits) == (found.code, found.bits)


@mark.parametrize("name", ALL)
def test_torch_dtypes_name_themselves(name):
    torch = importorskip("torch")
    if not hasattr(torch, name):
        skip(f"torch has no {name}")
    assert element_type(getattr(torch, name)) is ELEMENT_TYPES[name]


@mark.parametrize("name", ["float32", "bfloat16", "int8", "float8_e5m2"])
def test_jax_dtypes_name_themselves(name):
    jnp = importorskip("jax.numpy")
    assert element_type(getattr(jnp, name)) is ELEMENT_TYPES[name]


def test_type_that_others_lack_is_a_line_and_refused_by_them(tmp_path):
    importorskip("torch")
    line = '        ElementType("float8_e4m3", 1, 8),\n'
    code = """
import ml_dtypes, numpy as np, torch
import te_select
from te_select.operator.systems import OPS
dtype, cond = np.dtype(ml_dtypes.float8_e4m3), np.array([True, False])
k = te_select.compile(te_select.Workload((2,), (), (), "float8_e4m3", "multidirectional"))
assert k(cond, 1.5, np.zeros((), dtype)).tolist() == [1.5, 0]
refusals = [
    lambda: k(torch.from_numpy(cond), 1.5, 0.0),
    lambda: k(cond, torch.tensor(1.0).to(torch.float8_e4m3fn), 0.0),
    *(lambda op=op: OPS[op].element_type("float8_e4m3") for op in OPS),
]
for each in refusals:
    try:
        each()
    except te_select.SelectError as error:
        print(error)
    else:
        raise AssertionError
"""
    edits = {"te_select/operator/dtypes.py": (line, '        ElementType("float8_e5m2", 1, 12),')}
    said = run_with(edits, tmp_path, code).splitlines()
    assert len(said) == 5 and all("float8_e4m3" in each for each in said)
    assert said[0].startswith("torch has no element type float8_e4m3")
    assert "it has no float8 types" in said[2] and "it has no such type" in said[3]


def test_python_types_name_what_numpy_reads_in_them():
    assert element_type(bool).name == "bool"
    assert element_type(float).name == "float64"


def test_dlpack_code_of_no_element_type_is_none():
    assert from_dlpack_code(3, 64, 1) is from_dlpack_code(2, 128, 1) is None


OTHERS = ["float", "Float32", "float128", "string", "", "object", "M8[s]", None, object, str, 42]
OTHERS += map(np.dtype, ("M8[s]", "U4", "V8", [("re", "f4"), ("im", "f4")]))
OTHERS += [np.longdouble, ml_dtypes.int4, ml_dtypes.float8_e4m3fnuz]
OTHERS += [np.dtype(name).newbyteorder("S") for name in ("int16", "float32", "complex64")]


@mark.parametrize("dtype", OTHERS, ids=repr)
def test_other_types_are_refused_with_the_list_of_known_ones(dtype):
    with raises(DTypeError) as error:
        element_type(dtype)
    assert repr(dtype) in str(error.value)
    assert all(name in str(error.value) for name in ELEMENT_TYPES)
    assert isinstance(error.value, SelectError)
    assert isinstance(error.value, TypeError)


@mark.parametrize(
    "dtype, meant",
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
def test_nearly_right_name_is_answered_with_the_one_meant(dtype, meant):
    with raises(DTypeError, match=f"; did you mean {meant}\\?$"):
        element_type(dtype)


def test_torch_type_that_no_kernel_takes_is_refused():
    torch = importorskip("torch")
    with raises(DTypeError, match=r"torch\.qint8"):
        element_type(torch.qint8)
