"""te_select.where for JAX arrays is jax.numpy.where, whatever the other operands are."""

import numpy as np
from pytest import importorskip, mark, raises

import te_select
from te_select import ArgumentError

jax = importorskip("jax")
jnp = jax.numpy


@mark.parametrize("place", [0, 1, 2])
@mark.parametrize("of_jax", [jnp.ones(3), jnp.ones(3, "int4"), jax.random.key(0)])
def test_call_with_one_jax_array_goes_to_jax_as_it_is(of_jax, place, monkeypatch):
    asked = []
    monkeypatch.setattr(jnp, "where", lambda *args: asked.append(args) or "by JAX")
    given = [np.ones(3, bool), np.ones(3, "f4"), 2.5]
    given[place] = of_jax
    for arguments in (given, given[: place + 1]):
        assert te_select.where(*arguments) == "by JAX"
        found = asked.pop()
        assert [id(each) for each in found] == [id(each) for each in arguments]


@mark.parametrize("dtype", [object, "U1", "M8[s]", "V4", jnp.bfloat16])
def test_type_of_cond_hides_no_jax_array(dtype, monkeypatch):
    monkeypatch.setattr(jnp, "where", lambda *args: "by JAX")
    cond = np.zeros(3, dtype)
    where = te_select.where
    assert where(cond, jnp.ones(3), 2.5) == where(cond, 2.5, jnp.ones(3)) == "by JAX"


def test_it_is_traced_and_differentiated():
    x = jnp.arange(4.0)
    assert jax.jit(te_select.where)(x > 1, x, 0).tolist() == [0, 0, 2, 3]
    assert jax.grad(lambda x: te_select.where(x > 1, x * x, 0.0).sum())(x).tolist() == [0, 0, 4, 6]


def test_out_is_refused():
    with raises(ArgumentError, match="never writes"):
        te_select.where(jnp.ones(3, bool), 1.0, 2.0, out=np.zeros(3))
