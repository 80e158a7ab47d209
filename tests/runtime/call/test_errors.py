"""Calls that are refused: they raise a SelectError, and nothing is written."""

import numpy as np
from pytest import importorskip, mark, raises

from te_select import ArgumentError, DTypeError, Workload
from te_select.operator.dtypes import numpy_dtype
from tests.runtime.c.test_host import COND, ELSE, SAME, THEN
from tests.support import alike
from tests.support.runtime_standin import kernel


@mark.parametrize(
    "change, error, text",
    [
        ({"else_": ELSE.astype(">f4")}, DTypeError, "else_ has element type >f4 in foreign byte"),
        ({"then": THEN.astype(object)}, DTypeError, "then has element type object"),
        ({"then": [[1.0]]}, ArgumentError, "then is a list; expected a NumPy array"),
        ({"then": 1.0}, ArgumentError, r"then is the scalar 1.0.*of shape \[3,4\]"),
        ({"then": np.float32(1)}, ArgumentError, r"then has shape \[\]"),
        ({"out": 1.0}, ArgumentError, "out is the scalar 1.0"),
    ],
)
def test_wrong_operand_is_named(change, error, text):
    out = np.full((3, 4), 7, "f4")
    with raises(error, match=text):
        kernel(SAME)(**{"cond": COND, "then": THEN, "else_": ELSE, "out": out} | change)
    assert (out == 7).all()


def test_jax_that_would_narrow_the_result_is_refused():
    jax = importorskip("jax")
    k = kernel(Workload((), (3,), (3,), "int64"))
    then = np.full(3, 2**40)
    jax.config.update("jax_enable_x64", True)
    try:
        wide = jax.numpy.asarray(then)
        assert k(True, wide, wide).tolist() == then.tolist()
    finally:
        jax.config.update("jax_enable_x64", False)
    with raises(DTypeError, match=r"enable jax_enable_x64.* or pass a NumPy out"):
        k(True, wide, wide)
    assert k(True, wide, wide, out=np.zeros(3, "i8")).tolist() == then.tolist()


def test_sizes_beyond_memory_are_refused():
    k = kernel(Workload((1, 1), ("a", 1), (1, "b"), "float64", "multidirectional"))
    far = np.lib.stride_tricks.as_strided(np.zeros(1), (2**24, 1), (0, 0))
    with raises(ArgumentError, match=r"the operands cannot be used: .*MemoryError"):
        k(np.ones((1, 1), bool), far, far.T)


def test_jax_tracer_is_refused():
    jax = importorskip("jax")
    for transform in (jax.jit, jax.vmap):
        with raises(ArgumentError, match=r"then is traced by JAX.*; use jnp\.where there"):
            transform(lambda x: kernel(SAME)(COND, x, ELSE))(THEN)


def test_torch_tensors_that_are_refused():
    torch = importorskip("torch")
    cond, then, else_ = (torch.from_numpy(x) for x in (COND, THEN, ELSE))
    k = kernel(SAME)
    with raises(ArgumentError, match=r"else_ is a torch\.sparse_coo tensor.*to_dense"):
        k(cond, then, else_.to_sparse())
    with raises(ArgumentError, match="then is a torch tensor without memory"):
        torch.vmap(lambda x: k(cond, x, else_))(torch.ones(2, 3, 4))


@mark.parametrize("dtype", ["bool", "int64", "float32", "bfloat16"])
def test_int_too_long_to_print_is_refused(dtype):
    k = kernel(alike(dtype=dtype))
    with raises((ArgumentError, DTypeError), match=r"then is .*an int of 16610 bits"):
        k(True, 10**5000, 1)


def test_cond_scalar_is_a_bool():
    with raises(DTypeError, match="cond is the int 1; expected bool: pass cond != 0"):
        kernel(alike())(1, 1.0, 2.0)


@mark.parametrize(
    "dtype, value, cast",
    [
        ("float32", np.float64(0.1), "np.float32(else_)"),
        ("float16", np.float32(0.1), "np.float16(else_)"),
        ("bfloat16", np.float64(0.1), "ml_dtypes.bfloat16(else_)"),
    ],
)
def test_numpy_scalar_of_another_type_is_refused_with_a_cast(dtype, value, cast):
    k = kernel(Workload((3, 4), (3, 4), (), dtype))
    then = np.ones((3, 4), numpy_dtype(dtype))
    said = f"else_ has element type {value.dtype.name}; expected {dtype}: pass {cast}, or a Python"
    with raises(DTypeError) as caught:
        k(COND, then, value)
    assert str(caught.value).startswith(said)
    names = {"np": np, "else_": value, "ml_dtypes": importorskip("ml_dtypes")}
    assert k(~COND, then, eval(cast, names)).shape == (3, 4)
