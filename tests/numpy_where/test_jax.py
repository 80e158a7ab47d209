"""te_select.jax.where is jax.numpy.where, and a kernel of te-select inside of compiled programs."""

import itertools
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from tests.support.cases import the_others_slow
from tests.support.where_calls import path_of_python

jax = pytest.importorskip("jax")
pytest.importorskip("jax_tvm_ffi")
jnp = jax.numpy

from te_select.jax import where  # noqa: E402 - it needs both packages

INTEGERS = [f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
REAL = ["bool", *INTEGERS, "float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
TYPES = [*REAL, *COMPLEX, "float8_e4m3fn", "float8_e5m2"]
SHAPES = [
    ((8, 16), (8, 16), (8, 16)),
    ((8, 1), (8, 16), ()),
    ((16,), (4, 1, 16), (8, 1)),
    ((), (3,), (3,)),
    ((), (), ()),
    ((1, 1), (1,), ()),
]
OF_TYPES = list(itertools.product(TYPES, SHAPES))
SMOOTH = list(itertools.product(("float32", "complex64", "float64", "bfloat16"), SHAPES))
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def wide_numbers():
    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        yield


def drawn(shape, dtype):
    """An array of any bits, NaNs with payloads and negative zeros among them."""
    if dtype == "bool":
        return jnp.asarray(RNG.integers(0, 2, shape), bool)
    bits = RNG.integers(0, 256, (*shape, np.dtype(dtype).itemsize), "u1")
    return jnp.asarray(bits.view(np.dtype(dtype)).reshape(shape))


def operands(shapes, dtype):
    return [drawn(shapes[0], "bool"), *(drawn(shape, dtype) for shape in shapes[1:])]


def is_by_kernel(function, *args):
    return "@te_select.where" in jax.jit(function).lower(*args).as_text()


def assert_same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert found.weak_type == expected.weak_type
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def same_as_jax(function, *args):
    """Compare a function of where, compiled and not, with the same one of jax.numpy.where."""
    expected = jax.jit(lambda *args: function(jnp.where, *args))(*args)
    for found in (jax.jit(lambda *args: function(where, *args))(*args), function(where, *args)):
        jax.tree.map(assert_same, found, expected)


@pytest.mark.parametrize(
    ("dtype", "shapes"),
    the_others_slow(OF_TYPES, [*OF_TYPES[::7], *itertools.product(["float32"], SHAPES)]),
)
def test_bits_are_those_of_numpy_in_jit(dtype, shapes):
    given = operands(shapes, np.dtype(jnp.dtype(dtype)))
    for found in (jax.jit(where)(*given), where(*given)):
        assert_same(found, jnp.asarray(np.where(*map(np.asarray, given))))
        assert found.aval == jax.jit(jnp.where)(*given).aval
    assert is_by_kernel(where, *given) is (dtype not in COMPLEX)


@pytest.mark.parametrize(
    "shapes",
    [
        ((4,), (2, 4), ()),
        pytest.param(((4,), (4,), (4,)), marks=pytest.mark.slow),
        pytest.param(((3, 1), (4,), (3, 4)), marks=pytest.mark.slow),
    ],
)
def test_vmap_over_every_pattern_of_axes(shapes):
    axes = [(None, *range(-1, len(shape) + 1)) for shape in shapes]
    seen = 0
    for chosen in itertools.product(*axes):
        if chosen == (None, None, None) or any(axis == -1 for axis in chosen):
            continue
        batched = [
            shape if axis is None else (*shape[:axis], 5, *shape[axis:])
            for shape, axis in zip(shapes, chosen, strict=True)
        ]
        given = operands(batched, "float32")
        found = jax.jit(jax.vmap(where, chosen))(*given)
        assert_same(found, jax.vmap(jnp.where, chosen)(*given))
        assert is_by_kernel(jax.vmap(where, chosen), *given)
        seen += 1
    assert seen >= 7


def test_vmap_of_vmap_and_of_a_gradient():
    c, x, y = operands([(3, 4), (5, 4), (4,)], "float32")

    def gradients(where, c, x, y):
        return jax.grad(lambda x, y: where(c, x, y).sum(), (0, 1))(x, y)

    def outer(where, c, x, y):
        one = jax.vmap(lambda c, x: where(c, x, y), (0, None))
        return jax.vmap(one, (None, 0))(c, x)

    same_as_jax(outer, c, x, y)
    same_as_jax(
        lambda where, *args: jax.vmap(lambda c: gradients(where, c, *args[1:]))(args[0]), c, x[0], y
    )


@pytest.mark.parametrize(("dtype", "shapes"), the_others_slow(SMOOTH, SMOOTH[::5]))
def test_gradients_and_tangents_are_those_of_jax(shapes, dtype):
    c, x, y = drawn(shapes[0], "bool"), jnp.ones(shapes[1], dtype), jnp.ones(shapes[2], dtype)
    out = jnp.where(c, x, y)
    weights = jnp.arange(1, out.size + 1).reshape(out.shape).astype(dtype)
    tangents = [jnp.full_like(x, 2), jnp.full_like(y, 3)]

    def backwards(where, x, y):
        return jax.vjp(lambda x, y: where(c, x, y), x, y)[1](weights)

    def forwards(where, x, y):
        return jax.jvp(lambda x, y: where(c, x, y), (x, y), tuple(tangents))

    same_as_jax(backwards, x, y)
    same_as_jax(forwards, x, y)
    same_as_jax(lambda where, x: jax.jvp(lambda x: where(c, x, y), (x,), (tangents[0],)), x)
    same_as_jax(lambda where, y: jax.vjp(lambda y: where(c, x, y), y)[1](weights), y)
    if dtype != "complex64":
        assert is_by_kernel(lambda x, y: backwards(where, x, y), x, y)


def test_second_derivatives_and_rows_of_a_jacobian():
    c, x = jnp.asarray([True, False, True]), jnp.asarray([1.0, 2.0, 3.0])
    for transform in (jax.hessian, jax.jacfwd, jax.jacrev):
        same_as_jax(lambda where, x: transform(lambda x: where(c, x**3, x).sum())(x), x)  # noqa: B023


def test_inf_in_a_gradient_that_is_not_selected_stays_out():
    c = jnp.asarray([True, False])
    _, back = jax.vjp(lambda x, y: where(c, x, y), jnp.zeros(2), jnp.zeros(2))
    x, y = back(jnp.asarray([1.0, jnp.inf]))
    assert x.tolist() == [1.0, 0.0] and y.tolist() == [0.0, jnp.inf]


def test_loops_and_checkpoints_run_it():
    def program(where, x):
        def step(carry, each):
            carry = jax.checkpoint(lambda c: where(each > 0, c, c + each))(carry)
            return carry, carry

        return jax.grad(lambda x: jax.lax.scan(step, jnp.ones(4), x)[0].sum())(x)

    same_as_jax(program, jnp.asarray([[1.0], [-2.0], [3.0]]))


@pytest.mark.parametrize("position", [1, 2])
def test_donated_operand_gives_its_memory_or_is_let_be(position):
    given = operands([(64, 64)] * 3, "float32")
    expected = jnp.where(*given)
    copies = [jnp.array(each) for each in given]
    program = jax.jit(where, donate_argnums=position)
    assert_same(program(*copies), expected)
    assert copies[position].is_deleted()
    twice = jax.jit(lambda c, x, y: (where(c, x, y), x, y), donate_argnums=position)
    found = twice(*[jnp.array(each) for each in given])
    for each, other in zip(found, (expected, *given[1:]), strict=True):
        assert_same(each, other)


@pytest.mark.parametrize(
    "given",
    [
        (True, 1.0, 2),
        ([True], 1.0, 2),
        (None, 1.0, 2),
        (np.ones(3, bool), 1, 2.5),
        (np.ones(3), np.ones((3, 1)), np.float32(1)),
        (np.asarray([1j, 0]), np.int8(1), np.ones(2, "f2")),
        (np.ones(3, bool), np.ones(2), 1.0),
        (np.zeros((0, 3), bool), np.ones(3), 1.0),
        (np.asarray([np.nan, 0, -0.0]), np.int32(1), np.ones(3, "u1")),
        (np.ones(2, bool), "text", 1.0),
        (np.ones(2, bool), None, 1.0),
        (np.ones(2, bool), 2**70, 1.0),
        (np.ones(2, bool), np.ones(2, jnp.int4), 1),
    ],
    ids=str,
)
def test_types_and_errors_are_those_of_jax(given):
    try:
        expected = jnp.where(*given)
    except Exception as error:
        with pytest.raises(type(error)):
            where(*given)
    else:
        assert_same(where(*given), expected)


def test_keys_of_random_numbers_go_to_jax():
    keys = jax.random.split(jax.random.key(0), 3)
    found = jax.jit(where)(jnp.arange(3) > 0, keys, jax.random.key(1))
    expected = jnp.where(jnp.arange(3) > 0, keys, jax.random.key(1))
    assert (jax.random.key_data(found) == jax.random.key_data(expected)).all()


def test_exported_program_is_that_of_xla():
    given = operands([(8,)] * 3, "float32")
    exported = jax.export.export(jax.jit(where))(*given)
    again = jax.export.deserialize(exported.serialize())
    assert "@te_select.where" not in exported.mlir_module()
    assert_same(again.call(*given), jnp.where(*given))
    shape = jax.export.symbolic_shape("n, 3")
    named = [jax.ShapeDtypeStruct(shape, each.dtype) for each in given]
    given = operands([(5, 3)] * 3, "float32")
    for function in (where, jax.vmap(where)):
        with_names = jax.export.export(jax.jit(function))(*named)
        assert_same(with_names.call(*given), jnp.where(*given))


def test_it_runs_with_jit_switched_off():
    given = operands([(8, 1), (8, 16), ()], "float32")
    expected = jnp.where(*given)
    with jax.disable_jit():
        assert_same(where(*given), expected)
        gradient = jax.grad(lambda x: where(given[0], x, 0.0).sum())(jnp.ones(16))
        assert_same(jax.vmap(where, (0, 0, None))(*given), expected)
    assert (gradient == given[0].sum()).all()


def test_odd_shapes_are_taken_or_left_to_xla():
    empty = operands([(0, 3), (0, 3), (3,)], "float32")
    assert jax.jit(jax.vmap(where, (0, 0, None)))(*empty).shape == (0, 3)
    for rank in (63, 64, 65):
        shape = (1,) * (rank - 2) + (2, 3)
        given = [each.reshape(shape) for each in operands([(2, 3)] * 3, "float32")]
        assert is_by_kernel(where, *given) is (rank <= 64)
        found = jax.jit(where)(*given).reshape(2, 3)
        assert_same(found, jnp.where(*[each.reshape(2, 3) for each in given]))


def test_without_kernels_it_is_that_of_xla(monkeypatch):
    from te_select.numpy_where.kernels import library

    monkeypatch.setattr(library, "fetch", lambda part: False)
    given = operands([(7, 3)] * 3, "float32")
    assert not is_by_kernel(where, *given)
    assert_same(jax.jit(where)(*given), jnp.where(*given))


def test_kernel_of_the_rows_that_a_program_has_is_loaded(monkeypatch):
    from te_select.numpy_where.kernels import library

    fetched = []
    monkeypatch.setattr(library, "fetch_missing_kernel", fetched.append)
    for shapes, number in (
        ([(1, 5), (40, 5), (40, 5)], 9 * 2 + 3 * 0 + 0),
        ([(9, 40, 7), (9, 1, 7), (9, 40, 7)], 9 * 0 + 3 * 2 + 0),
        ([(1, 5000), (40, 5000), (40, 5000)], None),
        ([(40, 5)] * 3, None),
        ([(), (), (3,)], None),
    ):
        jax.jit(where).lower(*operands(shapes, "float16"))
        expected = [] if number is None else [5 * 8 + 27 * 1 + number]  # behind the runs
        assert fetched == expected, shapes
        fetched.clear()


MANY_DEVICES = """
    import functools
    import jax, jax.numpy as jnp, numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P
    from te_select.jax import where

    assert len(jax.devices()) == 4
    c, x, y = jnp.arange(64).reshape(8, 8) % 3 == 0, jnp.arange(64.0).reshape(8, 8), jnp.ones(8)
    mesh = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    parts = NamedSharding(mesh, P("a", "b"))
    c, x = jax.device_put(c, parts), jax.device_put(x, parts)
    expected = jnp.where(c, x, y)
    text = jax.jit(where).lower(c, x, y).as_text()
    assert "@te_select.where" not in text, text
    to_parts = jax.jit(where, out_shardings=parts)
    for found in (jax.jit(where)(c, x, y), where(c, x, y), to_parts(c, x, y)):
        assert (found == expected).all()
        assert found.sharding.is_equivalent_to(parts, 2), found.sharding
    for check in (True, False):
        mapped = functools.partial(
            jax.shard_map, mesh=mesh, in_specs=(P("a", "b"), P("a", "b"), P("b")),
            out_specs=P("a", "b"), check_vma=check)
        assert (jax.jit(mapped(where))(c, x, y) == expected).all()
        gradient = jax.grad(lambda x: mapped(where)(c, x, y).sum())(x)
        assert (gradient == c).all()
    explicit = jax.make_mesh((2, 2), ("a", "b"), axis_types=(jax.sharding.AxisType.Explicit,) * 2)
    with jax.set_mesh(explicit):
        given = [np.asarray(each) for each in (c, x, 0.0 * np.asarray(x))]
        c, x, y = (jax.device_put(each, P("a", "b")) for each in given)
        found = jax.jit(where)(c, x, y)
        assert (np.asarray(found) == np.where(c, x, 0)).all()
        assert jax.typeof(found).sharding.spec == P("a", "b")
    print(jax.pmap(where)(*[np.ones((4, 3), bool), np.ones((4, 3)), np.zeros((4, 3))]).sum())
    print("right")
"""


def run(program, **variables):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path_of_python(), "JAX_PLATFORMS": "cpu", **variables},
    )


def test_programs_for_several_devices_are_divided_by_xla():
    done = run(MANY_DEVICES, XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "right"


@pytest.mark.parametrize("package", ["jax", "jax_tvm_ffi"])
def test_missing_package_is_named(package):
    done = run(
        f"""
        import sys
        sys.modules["{package}"] = None
        import te_select
        try:
            import te_select.jax
        except te_select.ToolchainError as error:
            print(error)
        """
    )
    assert done.stdout == (
        f"te_select.jax needs {package}, which is not installed; pip install 'te-select[jax]'\n"
    ), done.stderr


@pytest.mark.slow
def test_threads_compile_and_call_it_at_once():
    done = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        import jax, jax.numpy as jnp
        from te_select.jax import where

        def work(n):
            x = jnp.arange(1000.0 + n)
            pairs = [(jax.jit(where)(x > k, x, -x), jnp.where(x > k, x, -x)) for k in range(9)]
            return all((found == expected).all() for found, expected in pairs)

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(work, range(32)))
        """
    )
    assert done.returncode == 0, done.stderr
