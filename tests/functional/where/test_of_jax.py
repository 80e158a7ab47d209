"""te_select.where for JAX arrays does what jax.numpy.where does."""

import numpy as np
import pytest

import te_select
from te_select.errors import ArgumentError

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(6,), (300, 70), (), (0, 2)])
def test_values_and_types_are_those_of_jax(dtype, shape):
    cond = jnp.asarray(np.random.default_rng(0).random(shape) < 0.5)
    x = jnp.asarray(np.random.default_rng(1).random(shape) * 9).astype(dtype)
    for sides in ((x, x + x), (x, 1), (2.5, x), (x, x.astype("float32")), (x, np.arange(2.0)[1])):
        found, expected = te_select.where(cond, *sides), jnp.where(cond, *sides)
        assert isinstance(found, jax.Array)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()
        assert found.devices() == x.devices()


def test_inside_jit_it_says_what_to_do():
    with pytest.raises(ArgumentError, match=r"use jnp\.where"):
        jax.jit(lambda x: te_select.where(x > 0, x, 0))(jnp.arange(3.0))


def test_out_is_refused():
    with pytest.raises(ArgumentError, match="never writes"):
        te_select.where(jnp.ones(3, bool), 1.0, 2.0, out=np.zeros(3))


def test_errors_are_those_of_jax():
    for given in ((jnp.ones(3, bool), jnp.ones(2), 1.0), (jnp.ones(3, bool), 1.0)):
        with pytest.raises(Exception) as theirs:
            jnp.where(*given)
        with pytest.raises(theirs.type):
            te_select.where(*given)
