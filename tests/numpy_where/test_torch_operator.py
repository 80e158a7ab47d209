"""te_select::where: gradients, transformations and tracing; te_select.where for torch tensors."""

import itertools

import numpy as np
import pytest

import te_select

torch = pytest.importorskip("torch")

from te_select.numpy_where import tensor_libraries  # noqa: E402
from te_select.numpy_where.torch_operator import type_beside  # noqa: E402
from te_select.torch import where  # noqa: E402

OPERATOR = torch.ops.te_select.where


@pytest.fixture(autouse=True)
def kernels(family):
    """The kernels are built once."""


@pytest.fixture
def operands():
    generator = torch.Generator().manual_seed(0)
    cond = torch.rand(3, 4, generator=generator) > 0.5
    x = torch.randn(3, 4, dtype=torch.double, generator=generator, requires_grad=True)
    y = torch.randn(4, dtype=torch.double, generator=generator, requires_grad=True)
    return cond, x, y


def test_opcheck(operands):
    cond, x, y = operands
    torch.library.opcheck(OPERATOR.default, operands)
    torch.library.opcheck(OPERATOR.default, (cond, x.detach(), y.detach().float()))
    out = torch.empty(3, 4, dtype=torch.double)
    torch.library.opcheck(OPERATOR.out, (cond, x.detach(), y.detach()), {"out": out})


@pytest.mark.parametrize("function", [where, te_select.where])
def test_gradients(operands, function):
    cond, x, y = operands
    check = torch.autograd.gradcheck
    assert check(lambda x, y: function(cond, x, y), (x, y), check_forward_ad=True)
    assert check(lambda x, y: function(cond, x, y), (x, y), check_batched_grad=True)
    assert check(lambda x: function(cond, x, 0.0), (x,))
    assert torch.autograd.gradgradcheck(lambda x, y: function(cond, x, y), (x, y))


def test_what_was_not_selected_gives_no_nan():
    x = torch.tensor([torch.inf, torch.nan, 1.0], requires_grad=True)
    weights = torch.tensor([torch.inf, torch.nan, 2.0])
    cond = torch.tensor([False, False, True])
    (where(cond, x, torch.zeros(3)) * torch.where(cond, weights, 1)).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 2.0]
    grad = torch.tensor([torch.inf, torch.nan, 1.0])
    (found,) = torch.autograd.grad(where(cond, x, torch.zeros(3)), x, grad)
    assert found.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("function", [where, te_select.where])
def test_transformations(operands, function):
    cond, x, y = operands
    x, y = x.detach(), y.detach()
    func = torch.func

    def loss(select):
        return lambda x: select(cond, x * x, y).sum()

    for transform in (func.grad, func.hessian, func.jacrev, func.jacfwd):
        assert torch.equal(transform(loss(function))(x), transform(loss(torch.where))(x))
    _, tangent = func.jvp(lambda x: function(cond, x, y), (x,), (x,))
    assert torch.equal(tangent, torch.where(cond, x, 0))
    batch = torch.randn(5, 4, 3)
    for dim in (0, 1, 2):
        ours = func.vmap(lambda a: function(a > 0, a, a[0]), in_dims=dim)(batch)
        theirs = func.vmap(lambda a: torch.where(a > 0, a, a[0]), in_dims=dim)(batch)
        assert torch.equal(ours, theirs)
    each = func.vmap(func.grad(lambda a: function(a > 0, a * a, 0.0).sum()))(batch)
    assert torch.equal(each, torch.where(batch > 0, 2 * batch, 0.0))


@pytest.mark.parametrize("opaque", [False, True])
def test_compile_and_export(opaque):
    def f(cond, x, y):
        return where(cond, x * 2, y, opaque=opaque) + where(cond, x, 0.5, opaque=opaque)

    compiled = torch.compile(f, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (3, 7, 9):
        cond, x, y = torch.rand(n, 4) > 0.5, torch.randn(n, 4, requires_grad=True), torch.randn(4)
        expected = torch.where(cond, x * 2, y) + torch.where(cond, x, 0.5)
        found = compiled(cond, x, y)
        assert torch.equal(found, expected)
        found.sum().backward()
        assert torch.equal(x.grad, torch.where(cond, 3.0, 0.0))

    class Module(torch.nn.Module):
        def forward(self, cond, x, y):
            return f(cond, x, y)

    rows = torch.export.Dim("rows", min=2)
    given = (torch.rand(3, 4) > 0.5, torch.randn(3, 4), torch.randn(4))
    program = torch.export.export(Module(), given, dynamic_shapes=({0: rows}, {0: rows}, None))
    assert ("te_select.where" in str(program.graph)) is opaque
    given = (torch.rand(8, 4) > 0.5, torch.randn(8, 4), torch.randn(4))
    assert torch.equal(program.module()(*given), f(*given))


@pytest.mark.parametrize("default", [torch.float, torch.double])
def test_the_type_of_a_number_beside_a_tensor(default, request):
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float))
    torch.set_default_dtype(default)
    dtypes = (torch.bool, torch.uint8, torch.int64, torch.half, torch.float, torch.double)
    for number, dtype in itertools.product((True, 3, 1.5, 2j), (*dtypes, torch.complex64)):
        assert type_beside(number, dtype) is torch.result_type(torch.zeros(2, dtype=dtype), number)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "half", "bfloat16", "float", "cfloat"])
@pytest.mark.parametrize("function", [where, te_select.where])
def test_values_and_types_are_torchs(function, dtype):
    dtype = getattr(torch, dtype)
    for shape in ((5,), (300, 70), (0, 3), ()):
        cond = torch.rand(shape) > 0.5
        x, y = (torch.rand(shape) * 9).to(dtype), (torch.rand(shape) * 9).to(dtype)
        for sides in ((x, y), (x, 1), (2.5, y), (x, y.float()), (x.mT if x.ndim > 1 else x, 0)):
            if sides[0] is not x and x.ndim > 1 and isinstance(sides[0], torch.Tensor):
                arguments = (cond.mT, *sides)
            else:
                arguments = (cond, *sides)
            expected = torch.where(*arguments)
            for _ in range(2):  # the second call takes the path with the fewest checks
                found = function(*arguments)
                assert found.dtype is expected.dtype
                assert torch.equal(found, expected)


def test_out_is_written_and_marked():
    cond, x, y = torch.rand(1000) > 0.5, torch.rand(1000), torch.rand(1000)
    expected, out = torch.where(cond, x, y), torch.empty(1000)
    before = out._version
    assert te_select.where(cond, x, y, out=out) is out
    assert torch.equal(out, expected) and out._version > before
    assert torch.equal(te_select.where(cond, x, y, out=x), expected)
    inside = torch.zeros(1001)
    with pytest.raises(
        RuntimeError, match="refer to a single memory location"
    ):  # the message of torch
        te_select.where(cond, inside[1:], y, out=inside[:-1])


def test_lazy_views_have_their_values():
    z = torch.randn(6, dtype=torch.cfloat)
    cond = torch.rand(6) > 0.5
    for view in (z.conj(), z.conj().imag, z.imag):
        assert torch.equal(te_select.where(cond, view, view), view)


@pytest.mark.parametrize(
    "arguments",
    [
        lambda: (torch.ones(3), torch.ones(3), torch.ones(3)),
        lambda: (torch.ones(3, dtype=torch.bool), torch.ones(3), torch.ones(4)),
        lambda: (torch.ones(3, dtype=torch.bool), torch.ones(3), torch.ones(3).to_sparse()),
        lambda: (torch.ones(3, dtype=torch.bool), torch.ones(3), "text"),
    ],
)
def test_errors_are_torchs(arguments):
    given = arguments()
    with pytest.raises(Exception) as theirs:
        torch.where(*given)
    with pytest.raises(theirs.type) as ours:
        te_select.where(*given)
    assert ours.type is theirs.type


def test_meta_tensors_give_a_meta_tensor():
    x = torch.ones(3, device="meta")
    found = te_select.where(x > 0, 1.0, x)
    assert found.device.type == "meta" and found.shape == (3,)


def test_cond_alone_is_nonzero():
    (found,) = te_select.where(torch.tensor([0, 2, 3]))
    assert found.tolist() == [1, 2]


@pytest.mark.parametrize("function", ["where", "operator"])
def test_tangents_of_tangents_are_those_of_torch(function):
    """Forward mode inside forward mode: an inner level must not hide the outer one."""
    ours = te_select.where if function == "where" else where
    x, cond, tangent = torch.tensor([2.0, 3.0]), torch.tensor([True, False]), torch.ones(2)

    def derivatives(select):
        def f(t):
            return select(cond, t**3, t**2)

        return (
            torch.func.jvp(lambda t: torch.func.jvp(f, (t,), (tangent,))[1], (x,), (tangent,))[1],
            torch.func.jacfwd(torch.func.jacfwd(f))(x),
            torch.func.jacrev(torch.func.jacfwd(f))(x),
            torch.func.jacfwd(torch.func.jacfwd(torch.func.jacfwd(f)))(x),
            torch.func.hessian(f)(x),
            torch.func.vmap(lambda t: torch.func.jvp(f, (t,), (tangent,))[1])(torch.stack([x, x])),
        )

    for found, expected in zip(derivatives(ours), derivatives(torch.where), strict=True):
        assert torch.equal(found, expected)


NUMBERS = (True, 3, -1, 300, 2**24 + 1, 2**63, 10**400, 1.5, -0.0, 1e30, 1e300)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "half", "bfloat16", "float", "double"])
@pytest.mark.parametrize("number", [*NUMBERS, float("inf"), float("nan"), 2j])
@pytest.mark.parametrize("shape", [(40,), (4, 10), (3, 4, 1)])
def test_number_beside_a_tensor_that_has_served(shape, number, dtype):
    cond = torch.arange(40).reshape(4, 10) % 3 == 0
    cond = cond.reshape(40) if len(shape) == 1 else cond
    x = torch.ones(shape, dtype=getattr(torch, dtype))
    te_select.where(cond, x, x)  # the next calls take the path with the fewest checks
    for sides in ((x, number), (number, x)):
        assert outcome(te_select.where, cond, *sides) == outcome(torch.where, cond, *sides)


def outcome(function, *arguments):
    """What a function gives, by its bits, or the type of what it raises."""
    try:
        given = function(*arguments)
    except Exception as error:
        return type(error)
    return given.dtype, given.shape, given.contiguous().view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("scalar", [np.int64(5), np.float32(1.5), np.True_, np.complex64(1j)])
@pytest.mark.parametrize("function", [where, te_select.where])
def test_scalar_of_numpy_beside_a_tensor_with_gradients(function, scalar):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    cond = torch.tensor([True, False])
    for sides in ((x, scalar), (scalar, x)):
        assert outcome(detached, function, cond, *sides) == outcome(
            detached, torch.where, cond, *sides
        )


def detached(function, *arguments):
    return function(*arguments).detach()


def test_sides_differ_in_what_torch_keeps_of_them():
    cond, x = torch.tensor([True, False]), torch.tensor([1.0, 2.0])
    te_select.where(cond, x, x)  # the next calls take the path with the fewest checks
    other = torch.tensor([3.0, 4.0], requires_grad=True)
    assert te_select.where(cond, x, other).requires_grad
    assert te_select.where(cond, other, x).requires_grad
    negative = torch.complex(x, x).conj().imag
    assert negative.is_neg()
    assert te_select.where(cond, x, negative).tolist() == [1.0, -2.0]
    assert te_select.where(cond, negative, x).tolist() == [-1.0, 2.0]


def test_tensor_of_inference_mode_is_written_within_it_only():
    cond, x = torch.tensor([True, False]), torch.ones(2)
    with torch.inference_mode():
        out = torch.zeros(2)
        te_select.where(cond, x, x, out=out)
    assert out.tolist() == [1, 1]
    for sides in ((x, x), (x, 0.0)):
        with pytest.raises(RuntimeError, match="inference tensor"):
            te_select.where(cond, *sides, out=out)


def test_out_that_requires_grad_is_refused_as_torch_does():
    cond, x, out = torch.tensor([True, False]), torch.ones(2), torch.zeros(2, requires_grad=True)
    te_select.where(cond, x, x)  # the next call takes the path with the fewest checks
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.where(cond, x, x, out=out)
    with pytest.raises(RuntimeError, match="requires grad"):
        te_select.where(cond, x, x, out=out)


@pytest.mark.parametrize("function", [where, te_select.where])
def test_out_beside_a_number_is_resized_too(function):
    cond, x, out = torch.tensor([True, False]), torch.ones(2), torch.empty(0)
    assert function(cond, x, -1.0, out=out) is out
    assert out.tolist() == [1, -1]


@pytest.mark.parametrize("cond", [True, 1.0, [True, False], np.ones(2, bool)])
def test_cond_that_is_no_tensor_is_refused_as_torch_does(cond):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(TypeError):
        torch.where(cond, x, x)
    with pytest.raises(TypeError):
        te_select.where(cond, x, x)


def test_symbolic_trace_records_the_call():
    import torch.fx

    traced = torch.fx.symbolic_trace(lambda a, b: te_select.where(a > 0, b, 1.0))
    a = torch.tensor([1.0, -1.0])
    assert traced(a, a).tolist() == [1.0, 1.0]
    assert traced(-a, a).tolist() == [1.0, -1.0]


def test_array_beside_a_tensor_stays_an_array_in_later_calls(monkeypatch):
    monkeypatch.setattr(tensor_libraries, "_all_calls", {})
    cond, x = np.ones(20_000, bool), np.ones(20_000, "f4")
    with pytest.raises(TypeError):
        te_select.where(torch.from_numpy(cond), x, torch.from_numpy(x))
    assert type(te_select.where(cond, x, np.ones(20_000))) is np.ndarray  # Python converts x
