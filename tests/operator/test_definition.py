"""The definition: its structure, and its values when compiled without any schedule."""

from functools import lru_cache
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import tirx

from te_select.operator.broadcast import RULES
from te_select.operator.definition import definition
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.workload import Workload

CARRIERS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.uint64}


@lru_cache(maxsize=256)
def compiled(workload: Workload) -> Any:
    return tvm.compile(definition(workload), target="llvm")["main"]


def carrier_shape(workload: Workload, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*shape, 2) if workload.element.width == 16 else shape


def check_against_numpy(workload: Workload, symbolic: Workload | None = None) -> None:
    """Run on random bits and compare with NumPy's where, bit for bit."""
    rng = np.random.default_rng(len(workload.name))
    carrier = CARRIERS[workload.element.width]
    limit = np.iinfo(carrier).max

    def bits(shape: tuple[Any, ...]) -> Any:
        return rng.integers(0, limit, carrier_shape(workload, shape), carrier, endpoint=True)

    cond = rng.integers(0, 2, workload.cond_shape, np.uint8)
    then, else_ = bits(workload.then_shape), bits(workload.else_shape)
    out = np.zeros(carrier_shape(workload, workload.out_shape), carrier)
    compiled(symbolic or workload)(*map(tvm_ffi.from_dlpack, (cond, then, else_, out)))

    out_rank = len(workload.out_shape)
    axis = workload.axis

    def laid_out(array: Any, shape: tuple[Any, ...], lead: int) -> Any:
        tail = array.shape[len(shape) :]
        rest = (1,) * (out_rank - lead - len(shape))
        return array.reshape((1,) * lead + shape + rest + tail)

    def lead(shape: tuple[Any, ...]) -> int:
        return out_rank - len(shape) if axis == -1 else axis

    truth = laid_out(cond, workload.cond_shape, lead(workload.cond_shape)) != 0
    if workload.element.width == 16:
        truth = truth[..., None]
    expected = np.where(
        truth,
        laid_out(then, workload.then_shape, out_rank - len(workload.then_shape)),
        laid_out(else_, workload.else_shape, lead(workload.else_shape)),
    )
    np.testing.assert_array_equal(out, expected)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    rule = draw(st.sampled_from(RULES))
    full = draw(st.lists(st.integers(1, 3), max_size=4))
    axis = draw(st.integers(-1, len(full))) if rule == "pdpd" else -1

    def operand(*, base: bool = False) -> list[int]:
        if rule == "none" or base:
            return full
        if axis >= 0:
            shape = full[axis : draw(st.integers(axis, len(full)))]
        else:
            shape = full[draw(st.integers(0, len(full))) :]
        return [1 if draw(st.booleans()) else dim for dim in shape]

    then = operand(base=rule in ("numpy", "pdpd"))
    dtype = draw(st.sampled_from(["uint8", "float16", "float32", "int64", "complex128"]))
    return Workload(operand(), then, operand(), dtype, rule, axis)


@settings(max_examples=25, deadline=None)
@given(workloads())
def test_unscheduled_definition_selects_what_numpy_does(workload: Workload) -> None:
    check_against_numpy(workload)


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES))
def test_every_element_type_passes_its_bits(name: str) -> None:
    check_against_numpy(Workload((3, 1), (1, 5), (3, 5), name, "multidirectional"))


@pytest.mark.parametrize(
    "workload",
    [
        Workload((), (), ()),
        Workload((), (), (), "complex128"),
        Workload((2, 1) * 6, (1, 2) * 6, (), "int8", "multidirectional"),
        Workload((5, 4, 1, 1, 1), (5, 1, 8, 1, 1), (1, 1, 5, 1), "int32", "multidirectional"),
        Workload((3, 1), (2,), (2,), "int16", "multidirectional"),
        Workload((3,), (2, 3, 4), (3, 4), "int32", "pdpd", 1),
        Workload((5,), (2, 3, 4, 5), (4, 5), "int32", "pdpd"),
    ],
    ids=str,
)
def test_corners_of_rank_and_placement(workload: Workload) -> None:
    check_against_numpy(workload)


def test_every_nonzero_cond_byte_is_true() -> None:
    cond = np.arange(256, dtype=np.uint8)
    out = np.zeros(256, np.uint32)
    then, else_ = np.full((), 7, np.uint32), np.full((), 9, np.uint32)
    workload = Workload((256,), (), (), "float32", "multidirectional")
    compiled(workload)(*map(tvm_ffi.from_dlpack, (cond, then, else_, out)))
    assert out.tolist() == [9] + [7] * 255


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9))
def test_named_dims_take_their_size_from_the_call(batch: int, n: int) -> None:
    symbolic = Workload((1, "n"), ("batch", "n"), (), "float16")
    check_against_numpy(symbolic.bind({"batch": batch, "n": n}), symbolic=symbolic)


def test_one_name_with_two_sizes_is_refused() -> None:
    run = compiled(Workload(("n",), ("n",), (), "int32"))
    arrays = [np.zeros(s, t) for s, t in ((3, "u1"), (4, "u4"), ((), "u4"), (4, "u4"))]
    with pytest.raises(ValueError, match="then"):
        run(*map(tvm_ffi.from_dlpack, arrays))


def buffers(workload: Workload) -> list[Any]:
    return [param.ty for param in definition(workload).params]


def test_parameters_are_named_as_callers_know_them() -> None:
    func = definition(Workload((3,), (3,), ()))
    assert [param.name for param in func.params] == ["cond", "then", "else_", "out"]
    assert func.attrs["global_symbol"] == "main"


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES))
def test_elements_are_carried_as_unsigned_ints_of_their_width(name: str) -> None:
    cond, *others = buffers(Workload((3,), (3,), (3,), name))
    assert str(cond.dtype) == "uint8"
    width = ELEMENT_TYPES[name].width
    assert {str(t.dtype) for t in others} == {f"uint{8 * min(width, 8)}"}
    assert [int(dim) for dim in others[-1].shape] == ([3, 2] if width == 16 else [3])


@pytest.mark.parametrize("name", sorted(ELEMENT_TYPES))
def test_no_buffer_promises_more_alignment_than_its_element(name: str) -> None:
    cond, *others = buffers(Workload(("n", 3), ("n", 3), (3,), name))
    assert cond.data_alignment == 1
    assert {t.data_alignment for t in others} == {min(ELEMENT_TYPES[name].width, 8)}


def test_extents_are_int64() -> None:
    for t in buffers(Workload((1, "n"), (3, "n"), (), "complex128")):
        assert {str(dim.ty.dtype) for dim in t.shape} <= {"int64"}


def test_one_name_is_one_variable_in_every_buffer() -> None:
    func = definition(Workload(("n", 1), ("n", "m"), (1, "m")))
    found: dict[str, list[Any]] = {}
    for param in func.params:
        for dim in param.ty.shape:
            if isinstance(dim, tirx.Var):
                found.setdefault(dim.name, []).append(dim)
    assert {name: len(dims) for name, dims in found.items()} == {"n": 3, "m": 3}
    for dims in found.values():
        assert all(dim.same_as(dims[0]) for dim in dims)


def test_definition_is_the_same_each_time() -> None:
    workload = Workload(("n", 1), ("n", 4), (), "bfloat16")
    assert tvm_ffi.structural_hash(definition(workload)) == (
        tvm_ffi.structural_hash(definition(workload))
    )


def test_types_of_one_width_share_one_definition() -> None:
    shapes = ((3, 1), (3, 4), ())
    a, b = (definition(Workload(*shapes, name)) for name in ("float32", "int32"))
    assert tvm_ffi.structural_equal(a, b)
