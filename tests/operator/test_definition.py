"""The definition: its structure, and its values when compiled without any schedule."""

from functools import lru_cache

import numpy as np
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import mark

from te_select import Workload
from te_select.operator.definition import definition
from te_select.operator.dtypes import ELEMENT_TYPES
from tests.support import shapes
from tests.support import strategies as s

ONE_PER_WIDTH = ("uint8", "float16", "float32", "int64", "complex128")


@lru_cache(maxsize=256)
def compiled(workload):
    return tvm.compile(definition(workload), target="llvm")["main"]


def carried(array):
    """The array as the unsigned ints that carry its elements."""
    width = array.itemsize
    return (array[..., None] if width == 16 else array).view(f"u{min(width, 8)}")


def check_against_numpy(workload, symbolic=None):
    """Run on random bits and compare with NumPy's where, bit for bit."""
    operands = s.operands(np.random.default_rng(len(workload.name)), workload)
    out = np.zeros(workload.out_shape, operands[1].dtype)
    arrays = (carried(array) for array in (*operands, out))
    compiled(symbolic or workload)(*map(tvm_ffi.from_dlpack, arrays))
    np.testing.assert_array_equal(s.as_bytes(out), s.expected(workload, *operands))


@settings(max_examples=25)
@given(s.workloads(ONE_PER_WIDTH).filter(lambda workload: 0 not in workload.out_shape))
def test_unscheduled_definition_selects_what_numpy_does(workload):
    check_against_numpy(workload)


@mark.parametrize(
    "workload",
    [
        *(Workload(*shapes("3,1 1,5 3,5"), name, "multidirectional") for name in ELEMENT_TYPES),
        Workload((256,), (), (), auto_broadcast="multidirectional"),  # any byte that is true
        Workload((), (), ()),
        Workload((), (), (), "complex128"),
        Workload((2, 1) * 6, (1, 2) * 6, (), "int8", "multidirectional"),
    ],
    ids=str,
)
def test_every_type_and_corners_of_rank_and_placement(workload):
    check_against_numpy(workload)


@settings(max_examples=10)
@given(st.integers(1, 9), st.integers(1, 9))
def test_named_dims_take_their_size_from_the_call(batch, n):
    symbolic = Workload(*shapes("1,n batch,n ()"), "float16")
    check_against_numpy(symbolic.bind({"batch": batch, "n": n}), symbolic=symbolic)


@mark.parametrize("name", sorted(ELEMENT_TYPES))
def test_buffers_are_of_unsigned_ints_without_more_alignment(name):
    func = definition(Workload(*shapes("n,3 n,3 3"), name))
    cond, *others = [param.ty for param in func.params]
    width = ELEMENT_TYPES[name].width
    assert (str(cond.dtype), cond.data_alignment) == ("uint8", 1)
    assert {(str(t.dtype), t.data_alignment) for t in others} == {
        (f"uint{8 * min(width, 8)}", min(width, 8))
    }
    assert [int(dim) for dim in others[1].shape] == ([3, 2] if width == 16 else [3])
    assert {str(dim.ty.dtype) for t in (cond, *others) for dim in t.shape} == {"int64"}
