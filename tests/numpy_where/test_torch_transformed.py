"""te_select.where and its operator under torch.compile and the transformations of torch.func."""

import warnings

import numpy as np
import pytest

import te_select

torch = pytest.importorskip("torch")

from te_select.torch import where  # noqa: E402

OUT = torch.ops.te_select.where.out
COND, ONES, ZEROS = torch.tensor([True, False]), torch.ones(2), torch.zeros(2)


@pytest.fixture(autouse=True)
def kernels(family):
    """The kernels are built once."""


def torchs_out(cond, x, y, *, out):
    torch.where(cond, x, y, out=out)


def outcome(function, *arguments):
    """The result of a call, or the type and the beginning of the text of its error."""
    try:
        return function(*arguments)
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


TRANSFORMED = {
    "grad": lambda f: torch.func.grad(f)(ONES),
    "jacrev": lambda f: torch.func.jacrev(f)(ONES),
    "jacfwd": lambda f: torch.func.jacfwd(f)(ONES),
    "jvp": lambda f: torch.stack(torch.func.jvp(f, (ONES,), (ONES,))),
    "vjp": lambda f: torch.func.vjp(f, ONES)[1](torch.tensor(1.0))[0],
    "grad of grad": lambda f: torch.func.grad(lambda x: torch.func.grad(f)(x).sum())(ONES),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.parametrize("make", [writes_x, overwrites_x, writes_a_constant])
def test_out_cuts_no_gradient_within_a_transformation(name, make):
    expected = outcome(TRANSFORMED[name], make(torchs_out))
    found = outcome(TRANSFORMED[name], make(OUT))
    if isinstance(expected, tuple):
        assert found == expected
    else:
        assert torch.equal(found, expected)


def test_out_is_written_where_nothing_is_recorded():
    requires = torch.ones(2, requires_grad=True)
    out = torch.zeros(2)
    before = out._version
    with torch.no_grad():
        OUT(COND, requires, ZEROS, out=out)
    assert out.tolist() == [1, 0] and out._version == before + 1


@pytest.mark.parametrize("function", [where, te_select.where])
def test_complex_number_beside_a_real_tensor_in_two_modes(function):
    def transformed(select):
        f = torch.func.grad(lambda y: select(COND, 1j, y).abs().sum())
        return torch.func.jvp(f, (torch.tensor([3.0, 4.0]),), (ONES,))

    assert all(map(torch.equal, transformed(function), transformed(torch.where)))


@pytest.mark.filterwarnings("ignore:ComplexHalf")
@pytest.mark.parametrize("function", [where, te_select.where])
def test_gradient_of_half_beside_a_complex_number(function):
    def transformed(select):
        f = torch.func.grad(lambda y: select(torch.tensor(False), 1j, y).abs())
        return torch.func.vmap(f)(torch.tensor([3.0, 4.0], dtype=torch.half))

    assert torch.equal(transformed(function), transformed(torch.where))


@pytest.mark.parametrize("side", [0.0, 2, ONES, torch.ones(2, dtype=torch.double)])
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


def test_the_attribute_calls_as_the_object_does():
    cond = np.array([True, False])
    assert te_select.where.__call__(cond, 1, 2).tolist() == [1, 2]
    out = np.zeros(2, np.int64)
    assert te_select.where.__call__(cond, 1, 2, out=out) is out
    assert te_select.where.__call__(cond)[0].tolist() == [0]


def test_tensor_that_has_escaped_from_vmap_is_torchs_error():
    escaped = []
    torch.vmap(lambda each: escaped.append(each) or each)(torch.ones(3, 2))
    for given in ((COND, escaped[0], ZEROS), (COND, ONES, escaped[0]), (escaped[0], ONES, ZEROS)):
        for select in (torch.where, where, te_select.where):
            with pytest.raises(RuntimeError, match="escaped"):
                select(*given)
