"""te_select.where and its operator under torch.compile and the transformations of torch.func."""

import warnings
from contextlib import nullcontext
from unittest.mock import Mock

import numpy as np
from pytest import fixture, importorskip, mark, raises

import te_select
import te_select.numpy

torch = importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from te_select.selecting import torch_operator  # noqa: E402
from te_select.torch import where  # noqa: E402

OPERATOR = torch.ops.te_select.where
OUT = OPERATOR.out
COND = torch.tensor([True, False])
ONES = torch.ones(2)
ZEROS = torch.zeros(2)
X = torch.tensor([2.0, 3.0])
FUNCTIONS = mark.parametrize("function", [where, te_select.where])


ALL_SIZES = mark.parametrize("least", [0, torch_operator.RECORDED_FROM])


@fixture(autouse=True)
def kernels(family, monkeypatch):
    """The kernels are built once; the operator does small calls, too."""
    monkeypatch.setattr("te_select.selecting.torch_operator.RECORDED_FROM", 0)


def torchs_out(cond, x, y, *, out):
    torch.where(cond, x, y, out=out)


def outcome(function, *arguments):
    """The result of a call as a list, or the type and the beginning of the text of its error."""
    try:
        return function(*arguments).tolist()
    except Exception as error:
        return type(error).__name__, str(error)[:60]


def writes_x(into):
    def function(x):
        out = torch.zeros(2)
        into(COND, x, ZEROS, out=out)
        return out.sum()

    return function


def overwrites_x(into):
    def function(x):
        out = x * 1
        into(COND, ZEROS, ZEROS, out=out)
        return out.sum()

    return function


def writes_a_constant(into):
    def function(x):
        out = torch.zeros(2)
        into(COND, ONES, ZEROS, out=out)
        return (out * x).sum()

    return function


SELECTING = {
    "powers": lambda select: lambda x: select(COND, x**3, x**2),
    "a row": lambda select: lambda x: select(COND, x * x, ONES),
    "its element": lambda select: lambda x: select(x > 2, x, x[..., 0]),
}
BESIDE_NUMBERS = {
    "a number": lambda select: lambda x: select(x > 2, x * x, 0.0),
    "a complex number": lambda select: lambda x: select(COND, 1j, x).abs(),
}


def summed(f):
    return lambda x: f(x).sum()


def tangent(f):
    return lambda x: torch.func.jvp(f, (x,), (ONES,))[1]


def of_dual(f):
    forward_ad = torch.autograd.forward_ad
    te_select.where(COND, X, X)  # the next calls take the path with the fewest checks
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(X, ONES))).tangent


jacrev, jacfwd, vmap = torch.func.jacrev, torch.func.jacfwd, torch.func.vmap
TRANSFORMED = {
    "grad": lambda f: torch.func.grad(summed(f))(X),
    "jacrev": lambda f: jacrev(f)(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "dual": of_dual,
    "jvp": lambda f: torch.stack(torch.func.jvp(f, (X,), (ONES,))),
    "vjp": lambda f: torch.func.vjp(summed(f), X)[1](torch.tensor(1.0))[0],
    "grad of grad": lambda f: torch.func.grad(summed(torch.func.grad(summed(f))))(X),
    "hessian": lambda f: torch.func.hessian(f)(X),
    "jvp of jvp": lambda f: tangent(tangent(f))(X),
    "jvp of grad": lambda f: tangent(torch.func.grad(summed(f)))(X),
    "three times jacfwd": lambda f: jacfwd(jacfwd(jacfwd(f)))(X),
    "vmap of jvp": lambda f: vmap(tangent(f))(torch.stack([X, X])),
    "vmap of grad": lambda f: vmap(torch.func.grad(summed(f)))(torch.stack([X, -X])),
}


@mark.parametrize("name", TRANSFORMED)
@mark.parametrize("make", [writes_x, overwrites_x, writes_a_constant])
def test_out_cuts_no_gradient_within_a_transformation(name, make):
    transform = TRANSFORMED[name]
    assert outcome(transform, make(OUT)) == outcome(transform, make(torchs_out))


@ALL_SIZES
@mark.parametrize("name", TRANSFORMED)
@mark.parametrize("function", [where, te_select.where, OPERATOR])
def test_transformations_are_torchs(name, function, least, monkeypatch):
    monkeypatch.setattr("te_select.selecting.torch_operator.RECORDED_FROM", least)
    makes = SELECTING if function is OPERATOR else SELECTING | BESIDE_NUMBERS
    for make in makes.values():
        found, expected = (outcome(TRANSFORMED[name], make(f)) for f in (function, torch.where))
        assert found == expected and isinstance(found, list)


@mark.filterwarnings("ignore:ComplexHalf")
@FUNCTIONS
def test_gradient_of_half_beside_a_complex_number(function):
    def transformed(select):
        f = torch.func.grad(lambda y: select(torch.tensor(False), 1j, y).abs())
        return vmap(f)(X.half())

    assert torch.equal(transformed(function), transformed(torch.where))


@FUNCTIONS
def test_vmap_along_any_axis_is_torchs(function):
    batch = torch.randn(5, 4, 3)
    for dim in (0, 1, 2):
        ours, theirs = (
            vmap(lambda a, f=f: f(a > 0, a, a[0]), in_dims=dim)(batch)
            for f in (function, torch.where)
        )
        assert torch.equal(ours, theirs)


@ALL_SIZES
@FUNCTIONS
def test_gradients_within_autocast_are_torchs(function, least, monkeypatch):
    monkeypatch.setattr("te_select.selecting.torch_operator.RECORDED_FROM", least)

    def run(select):
        x = X.clone().requires_grad_()
        row = torch.ones(3, 1, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            product = row @ x[None]
            found = select(product > 2, product, x) + select(COND, x, 0.0)
        (grad,) = torch.autograd.grad(found.float().pow(2).sum(), x, create_graph=True)
        (again,) = torch.autograd.grad(grad.sum(), x)
        return found.dtype, found.tolist(), grad.tolist(), again.tolist()

    assert run(function) == run(torch.where)


class Passing(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


DECISIONS = {
    "below": ((65_535,), (1,), nullcontext, False),
    "from there on": ((65_536,), (1,), nullcontext, True),
    "the result is larger": ((256, 1), (256,), nullcontext, True),
    "the result is larger, below": ((256, 1), (255,), nullcontext, False),
    "a mode watches": ((2, 2), (2,), Passing, True),
}


@mark.parametrize("case", DECISIONS)
@FUNCTIONS
def test_large_results_are_recorded_by_the_operator(function, case, monkeypatch):
    monkeypatch.undo()
    assert torch_operator.RECORDED_FROM == 65_536
    *shapes, within, expected = DECISIONS[case]
    x, y = (torch.ones(shape, requires_grad=True) for shape in shapes)
    for given in ((x > 0, x, y), (y > 0, x, 0.0), (y > 0, 0.0, x)):
        recorder = Mock(wraps=OPERATOR.default)
        monkeypatch.setattr("te_select.selecting.torch_operator._operator", recorder)
        with within():
            found = function(*given)
        assert torch.equal(found, torch.where(*given)) and recorder.called is expected


@FUNCTIONS
def test_small_call_within_vmap_is_the_operators(function, monkeypatch):
    monkeypatch.undo()
    recorder = Mock(wraps=OPERATOR.default)
    monkeypatch.setattr("te_select.selecting.torch_operator._operator", recorder)
    vmap(lambda each: function(each > 0, each, 0.0))(torch.ones(3, 2))
    assert recorder.called


def test_what_was_not_selected_gives_no_nan():
    x = torch.tensor([torch.inf, torch.nan, 1.0], requires_grad=True)
    cond = torch.tensor([False, False, True])
    grad = torch.tensor([torch.inf, torch.nan, 1.0])
    (found,) = torch.autograd.grad(where(cond, x, torch.zeros(3)), x, grad)
    assert found.tolist() == [0.0, 0.0, 1.0]


@mark.parametrize("opaque", [False, True])
def test_compile_and_export(opaque):
    def f(cond, x, y):
        return where(cond, x * 2, y, opaque=opaque) + where(cond, x, 0.5, opaque=opaque)

    def operands(n):
        return torch.rand(n, 4) > 0.5, torch.randn(n, 4), torch.randn(4)

    compiled = torch.compile(f, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (3, 7, 9):
        cond, x, y = operands(n)
        x.requires_grad_()
        found = compiled(cond, x, y)
        assert torch.equal(found, torch.where(cond, x * 2, y) + torch.where(cond, x, 0.5))
        found.sum().backward()
        assert torch.equal(x.grad, torch.where(cond, 3.0, 0.0))

    class Module(torch.nn.Module):
        def forward(self, cond, x, y):
            return f(cond, x, y)

    rows = torch.export.Dim("rows", min=2)
    dims = ({0: rows}, {0: rows}, None)
    program = torch.export.export(Module(), operands(3), dynamic_shapes=dims)
    assert ("te_select.where" in str(program.graph)) is opaque
    given = operands(8)
    assert torch.equal(program.module()(*given), f(*given))


@mark.parametrize("side", [0.0, 2, ONES, torch.ones(2, dtype=torch.double)])
def test_compile_takes_the_drop_in_as_a_whole(side):
    def f(cond, x):
        return te_select.where(cond, x, side) * 2

    x = torch.tensor([3.0, 4.0], requires_grad=True)
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = torch.compile(f, fullgraph=True, backend="aot_eager")(COND, x)
    assert torch.equal(found, f(COND, x)) and found.dtype is f(COND, x).dtype
    found.sum().backward()
    assert x.grad.tolist() == [2, 0]


def test_compile_takes_out_and_cond_alone():
    def into(cond, x, out):
        te_select.where(cond, x, x, out=out)
        return out + 1

    torch._dynamo.reset()
    compiled = torch.compile(into, backend="eager")
    assert compiled(COND, ONES, torch.zeros(2)).tolist() == [2, 2]
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        alone = torch.compile(
            lambda cond: te_select.where(cond)[0] + 1, fullgraph=True, backend="eager"
        )
        assert alone(COND).tolist() == [1]


ARRAYS = {
    "where": lambda lib: lambda a: lib.where(a > 0, a, 0.0).astype("f4"),
    "numbers": lambda lib: lambda a: lib.where(a > 0, 1, 0.0) * a,
    "cond alone": lambda lib: lambda a: a[lib.where(a > 0)],
    "select": lambda lib: lambda a: lib.select([a > 1, a > 0], [a, -a], 0.5).astype("f4"),
    "putmask": lambda lib: lambda a: (a := a * 1, lib.putmask(a, a < 0, 0.0))[0],
}


@mark.filterwarnings("ignore:Dynamo does not know")
@mark.parametrize("lib", [te_select, te_select.numpy], ids=lambda lib: lib.__name__)
@mark.parametrize("name", ARRAYS)
def test_arrays_within_compile_stay_arrays(name, lib):
    array = np.array([-1.0, 2.0, 0.5])
    torch._dynamo.reset()
    found = torch.compile(ARRAYS[name](lib), backend="eager")(array)
    expected = ARRAYS[name](np)(array)
    assert type(found) is np.ndarray and found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


def test_array_within_compile_is_written_by_out_and_copyto():
    def into(a, out, other):
        te_select.copyto(other, 0.0, where=a > 0)
        return te_select.where(a > 0, a, 0.0, out=out) + other

    torch._dynamo.reset()
    array = np.array([-1.0, 2.0])
    out = np.ones(2)
    other = np.ones(2)
    assert torch.compile(into, backend="eager")(array, out, other).tolist() == [1, 2]
    assert (out.tolist(), other.tolist()) == ([0, 2], [1, 0])


@mark.filterwarnings("ignore::DeprecationWarning")
def test_every_trace_records_the_call():
    from torch.fx import symbolic_trace
    from torch.fx.experimental.proxy_tensor import make_fx

    def call(a, b):
        return te_select.where(a > 0, b, 1.0)

    a = torch.tensor([1.0, -1.0])
    call(a, ONES)  # the next calls take the path with the fewest checks
    for traced in (
        symbolic_trace(call),
        make_fx(call)(a, ONES),
        torch.jit.trace(call, (a, ONES)),
    ):
        assert traced(a, a).tolist() == [1.0, 1.0]
        assert traced(-a, a).tolist() == [1.0, -1.0]


def test_tensor_that_has_escaped_from_vmap_is_torchs_error():
    escaped = []
    torch.vmap(lambda each: escaped.append(each) or each)(torch.ones(3, 2))
    for given in ((COND, escaped[0], ZEROS), (COND, ONES, escaped[0]), (escaped[0], ONES, ZEROS)):
        for select in (torch.where, where, te_select.where):
            with raises(RuntimeError, match="escaped"):
                select(*given)
