"""te_select.where for JAX arrays is jax.numpy.where, whatever the other operands are."""

import numpy as np
import pytest

import te_select
from te_select.errors import ArgumentError
from tests.support.programs import python
from tests.support.where_calls import path_of_python

jax = pytest.importorskip("jax")
jnp = jax.numpy


@pytest.mark.parametrize("place", [0, 1, 2])
def test_call_with_one_jax_array_goes_to_jax_as_it_is(place, monkeypatch):
    asked = []
    monkeypatch.setattr(jnp, "where", lambda *args: asked.append(args) or "by JAX")
    given = [np.ones(3, bool), np.ones(3, "f4"), 2.5]
    given[place] = jnp.ones(3)
    for arguments in (given, given[: place + 1]):
        assert te_select.where(*arguments) == "by JAX"
        found = asked.pop()
        assert [id(each) for each in found] == [id(each) for each in arguments]


@pytest.mark.parametrize("dtype", [object, "U1", "M8[s]", "V4", jnp.bfloat16])
def test_type_of_cond_hides_no_jax_array(dtype, monkeypatch):
    monkeypatch.setattr(jnp, "where", lambda *args: "by JAX")
    cond, where = np.zeros(3, dtype), te_select.where
    assert where(cond, jnp.ones(3), 2.5) == where(cond, 2.5, jnp.ones(3)) == "by JAX"


SWEEP = """
    import warnings
    import jax, jax.numpy as jnp, numpy as np
    import te_select
    from jax.sharding import NamedSharding, PartitionSpec
    x64 = (jax if hasattr(jax, "enable_x64") else jax.experimental).enable_x64

    warnings.simplefilter("ignore")
    assert len(jax.devices()) == 2
    rng = np.random.default_rng(0)
    one, two = jax.devices()
    both = NamedSharding(jax.make_mesh((2,), ("x",)), PartitionSpec("x"))
    n = 8
    deleted = jnp.ones(n)
    deleted.delete()
    conds = [
        jnp.arange(n) % 3 == 0, np.arange(n) % 3 == 0, True, jnp.arange(n) % 3, jnp.float32(1),
        jax.device_put(jnp.arange(n) % 2 == 0, two), jax.device_put(jnp.ones(n, bool), both),
    ]
    types = "bool uint8 int4 int32 float16 bfloat16 float8_e4m3fn float32 complex64".split()
    sides = [jnp.arange(n).astype(each) for each in types]
    sides += [jnp.asarray(2.5), jax.device_put(jnp.ones(n), one), jax.device_put(jnp.ones(n), two)]
    sides += [jax.device_put(jnp.ones(n), both), jnp.ones((n, 1)), jnp.ones(3), deleted]
    sides += [jax.random.split(jax.random.key(0), n), jax.random.key(1)]
    sides += [np.zeros(n, jax.dtypes.float0)]
    sides += [1, -1, 2**40, 10**400, 2.5, 1e300, 1j, True, None, "text", [1.0] * n]
    sides += [np.float32(1), np.float64(1), np.int64(2**40), np.arange(n), np.arange(n) / 3]

    def outcome(where, given):
        try:
            found = where(*given)
        except Exception as error:
            return type(error)
        is_key = jnp.issubdtype(found.dtype, jax.dtypes.prng_key)
        held = jax.random.key_data(found) if is_key else found
        is_weak = getattr(found, "weak_type", None)  # keys have none
        facts = type(found), found.dtype, found.shape, is_weak, found.committed
        return facts, found.sharding, np.asarray(held).tobytes()

    results = errors = 0
    for number in range(200):
        given = [given[rng.integers(len(given))] for given in (conds, sides, sides)]
        if not any(isinstance(each, jax.Array) for each in given):
            continue
        strict = rng.random() < 0.2
        with jax.numpy_dtype_promotion("strict" if strict else "standard"), x64(strict):
            expected = outcome(jnp.where, given)
            assert outcome(te_select.where, given) == expected, given
        results, errors = results + isinstance(expected, tuple), errors + isinstance(expected, type)
    print(results, errors)
"""


@pytest.mark.slow
def test_types_places_and_errors_are_those_of_jax():
    devices = "--xla_force_host_platform_device_count=2"
    how = {"PYTHONPATH": path_of_python(), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": devices}
    results, errors = map(int, python(SWEEP, **how).split())
    assert results > 40 and errors > 20


def test_it_is_traced_and_differentiated():
    x = jnp.arange(4.0)
    assert jax.jit(te_select.where)(x > 1, x, 0).tolist() == [0, 0, 2, 3]
    assert jax.grad(lambda x: te_select.where(x > 1, x * x, 0.0).sum())(x).tolist() == [0, 0, 4, 6]
    assert jax.vmap(te_select.where)(x > 1, x, -x).tolist() == [0, -1, 2, 3]


def test_out_is_refused():
    with pytest.raises(ArgumentError, match="never writes"):
        te_select.where(jnp.ones(3, bool), 1.0, 2.0, out=np.zeros(3))
