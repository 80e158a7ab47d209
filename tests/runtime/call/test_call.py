"""Calls that give a result: every kind of operand, against NumPy bit for bit."""

import numpy as np
import pytest

from te_select.operator.dtypes import numpy_dtype
from te_select.operator.workload import Workload
from tests.support.operands import bits_of, random, same
from tests.support.runtime_standin import kernel


@pytest.mark.parametrize("writable", [True, False])
def test_strides_that_are_no_multiple_of_the_element(writable):
    record = np.zeros(5, [("pad", "u1"), ("then", "f4")])
    record["then"] = np.arange(5)
    record.flags.writeable = writable
    out = kernel(same("float32", (5,)))(np.ones(5, bool), record["then"], np.zeros(5, "f4"))
    assert out.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
def test_zero_size(dtype):
    k = kernel(Workload((4, 0), (4, 1), (), dtype, "multidirectional"))
    out = k(np.zeros((4, 0), bool), random((4, 1), dtype), random((), dtype))
    assert out.shape == (4, 0)
    assert out.dtype == numpy_dtype(dtype)
    assert k(np.zeros((4, 0), bool), random((4, 1), dtype), random((), dtype), out=out) is out


def test_scalars_of_rank_0():
    k = kernel(Workload((), (), (), "float32"))
    out = k(True, 1, np.float32(2))
    assert isinstance(out, np.ndarray)
    assert out.shape == ()
    assert out == 1
    assert k(np.False_, 1.5, float("-inf")) == -np.inf
    assert k(np.array(True), np.array(3, "f4"), 2.0) == 3


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int8", -128),
        ("uint64", 2**64 - 1),
        ("bool", True),
        ("bfloat16", 0.5),
        ("bfloat16", 2**64),
        ("bfloat16", 10**20),
        ("float8_e5m2", 2**15),
        ("complex64", 1 + 2j),
        ("float8_e5m2", float("inf")),
        ("float64", float("nan")),
    ],
)
def test_python_scalars_of_every_kind(dtype, value):
    out = kernel(Workload((3,), (), (3,), dtype))(np.ones(3, bool), value, random((3,), dtype))
    wanted = value if abs(value) < 2**63 or dtype == "uint64" else float(value)
    assert bits_of(out) == bits_of(np.full(3, wanted, numpy_dtype(dtype)))
