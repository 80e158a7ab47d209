"""Calls that give a result: every kind of operand, against NumPy bit for bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from te_select.operator.dtypes import ELEMENT_TYPES, numpy_dtype
from te_select.operator.workload import Workload
from tests.support.operands import SHAPE, bits_of, expected, mask, random, same
from tests.support.runtime_standin import kernel


@pytest.mark.parametrize("dtype", sorted(ELEMENT_TYPES))
def test_every_element_type_is_copied_bit_for_bit(dtype):
    k = kernel(same(dtype))
    cond, then, else_ = mask(SHAPE), random(SHAPE, dtype, 1), random(SHAPE, dtype, 2)
    out = np.zeros_like(then)
    assert k(cond, then, else_, out=out) is out
    allocated = k(cond, then, else_)
    assert allocated.dtype == then.dtype
    assert bits_of(out) == bits_of(allocated) == bits_of(expected(cond, then, else_))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16", "complex64", "complex128"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: x[::-1],
        lambda x: x[:, ::-1],
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
        lambda x: np.frombuffer(b"x" + x.tobytes(), x.dtype, offset=1).reshape(x.shape),
        lambda x: np.broadcast_to(x[:1], x.shape),
    ],
    ids=["rows reversed", "columns reversed", "fortran", "strided", "read-only", "misaligned", "0"],
)
def test_inputs_of_any_layout_are_taken(dtype, spoil):
    cond, then, else_ = (
        spoil(x) for x in (mask(SHAPE), random(SHAPE, dtype), random(SHAPE, dtype, 2))
    )
    before = then.copy()
    assert bits_of(kernel(same(dtype))(cond, then, else_)) == bits_of(expected(cond, then, else_))
    assert bits_of(then) == bits_of(before)


@pytest.mark.parametrize("writable", [True, False])
def test_strides_that_are_no_multiple_of_the_element(writable):
    record = np.zeros(5, [("pad", "u1"), ("then", "f4")])
    record["then"] = np.arange(5)
    record.flags.writeable = writable
    out = kernel(same("float32", (5,)))(np.ones(5, bool), record["then"], np.zeros(5, "f4"))
    assert out.tolist() == [0, 1, 2, 3, 4]


def test_cond_bytes_other_than_0_and_1_are_true():
    cond = np.array([0, 1, 2, 128, 255], np.uint8).view(bool)
    k = kernel(same("int8", (5,)))
    assert k(cond, np.ones(5, np.int8), np.zeros(5, np.int8)).tolist() == [0, 1, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "complex128", "bfloat16"])
def test_out_of_any_layout_is_written(dtype):
    cond, then, else_ = mask(SHAPE), random(SHAPE, dtype, 1), random(SHAPE, dtype, 2)
    k, wanted = kernel(same(dtype)), bits_of(expected(cond, then, else_))
    memory = np.zeros((3, 10), then.dtype)
    assert k(cond, then, else_, out=memory[:, ::2]).tobytes() == wanted
    assert not memory[:, 1::2].any()
    buffer = bytearray(then.nbytes + 1)
    misaligned = np.frombuffer(buffer, then.dtype, offset=1).reshape(SHAPE)
    assert k(cond, then, else_, out=misaligned).tobytes() == wanted


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex128"])
@pytest.mark.parametrize("name", ["then", "else_"])
def test_in_place(dtype, name):
    args = {"cond": mask(SHAPE), "then": random(SHAPE, dtype, 1), "else_": random(SHAPE, dtype, 2)}
    wanted = bits_of(expected(**args))
    assert kernel(same(dtype))(**args, out=args[name]) is args[name]
    assert bits_of(args[name]) == wanted


@pytest.mark.parametrize("offset", [-1, 1, 3])
@pytest.mark.parametrize("name", ["cond", "then", "else_"])
def test_out_that_overlaps_in_part_gives_the_right_result(name, offset):
    k = kernel(same("uint8", (64,)))
    memory = random((80,), "uint8")
    args = {"cond": mask(64), "then": random((64,), "uint8", 1), "else_": random((64,), "uint8", 2)}
    view = memory[8:72].view(bool) if name == "cond" else memory[8:72]
    view[...] = args[name]
    args[name] = view
    wanted = bits_of(expected(**args))
    out = memory[8 + offset : 72 + offset]
    k(**args, out=out)
    assert bits_of(out) == wanted


def test_out_that_is_cond_gives_the_right_result():
    cond, then, else_ = mask(64), mask(64, 1), mask(64, 2)
    wanted = np.where(cond, then, else_)
    assert (kernel(same("bool", (64,)))(cond, then, else_, out=cond) == wanted).all()


def test_broadcast_input_that_is_part_of_out_is_copied_first():
    k = kernel(Workload((4, 4), (4,), (4, 4), "int32"))
    cond, else_, out = mask((4, 4)), random((4, 4), "int32"), random((4, 4), "int32", 3)
    wanted = np.where(cond, out[0].copy(), else_)
    assert (k(cond, out[0], else_, out=out) == wanted).all()


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
        ("float16", 3),
        ("complex128", 4),
        ("float8_e5m2", float("inf")),
        ("float64", float("nan")),
    ],
)
def test_python_scalars_of_every_kind(dtype, value):
    out = kernel(Workload((3,), (), (3,), dtype))(np.ones(3, bool), value, random((3,), dtype))
    wanted = value if abs(value) < 2**63 or dtype == "uint64" else float(value)
    assert bits_of(out) == bits_of(np.full(3, wanted, numpy_dtype(dtype)))


def test_named_dims_take_any_size():
    k = kernel(Workload(("b", 1), ("b", "n"), ("n",), "float32"))
    for b, n in ((1, 1), (2, 7), (0, 3), (5, 64)):
        cond, then, else_ = mask((b, 1)), random((b, n), "float32"), random((n,), "float32", 4)
        out = k(cond, then, else_)
        assert out.shape == (b, n)
        assert bits_of(out) == bits_of(expected(cond, then, else_))


def test_eight_threads_call_one_parallel_kernel():
    shape = (64, 64)
    k = kernel(same("float32", shape), 1)

    def is_right(seed):
        given = mask(shape, seed), *(random(shape, "float32", seed + more) for more in (0, 100))
        wanted = bits_of(expected(*given))
        return all(bits_of(k(*given)) == wanted for _ in range(50))

    with ThreadPoolExecutor(8) as callers:
        assert all(callers.map(is_right, range(8)))
