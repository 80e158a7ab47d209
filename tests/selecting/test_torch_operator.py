"""te_select::where, and te_select.where for torch tensors: values, types, out and errors."""

import functools
import itertools

import numpy as np
from pytest import fixture, importorskip, mark, raises

import te_select

torch = importorskip("torch")

from te_select.selecting import torch_operator  # noqa: E402
from te_select.selecting.torch_kernels import type_beside  # noqa: E402
from te_select.torch import where  # noqa: E402
from tests.support.operands import bits_of  # noqa: E402

OPERATOR = torch.ops.te_select.where
COND, X = torch.tensor([True, False]), torch.tensor([1.0, 2.0])
FUNCTIONS = mark.parametrize("function", [where, te_select.where])
DTYPES = ("bool", "uint8", "int8", "int64", "half", "bfloat16", "float", "double", "cfloat")


@fixture(autouse=True)
def kernels(family):
    """The kernels are built once."""


def outcome(function, *given):
    """What a call gives, by its bits, or the beginning of its error."""
    try:
        found = function(*given)
    except Exception as error:
        return type(error), str(error).splitlines()[0][:60]
    return found.dtype, found.shape, found.stride(), found.requires_grad, bits_of(found)


def check(function, *given):
    expected = outcome(torch.where, *given)
    for _ in range(2):  # the second call takes the path with the fewest checks
        assert outcome(function, *given) == expected, given


def test_opcheck():
    cond = torch.rand(3, 4) > 0.5
    x, y = (torch.randn(n, dtype=torch.double) for n in ((3, 4), 4))
    needs_grad = cond, x.requires_grad_(), y.requires_grad_()
    torch.library.opcheck(OPERATOR.default, needs_grad)
    torch.library.opcheck(OPERATOR.default, (cond, x.detach(), y.detach().float()))
    out = torch.empty(3, 4, dtype=torch.double)
    torch.library.opcheck(OPERATOR.out, (cond, x.detach(), y.detach()), {"out": out})


@mark.parametrize("default", [torch.float, torch.double])
def test_the_type_of_a_number_beside_a_tensor(default, request):
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float))
    torch.set_default_dtype(default)
    dtypes = (getattr(torch, name) for name in DTYPES)
    for number, dtype in itertools.product((True, 3, 1.5, 2j), dtypes):
        assert type_beside(number, dtype) is torch.result_type(torch.zeros(2, dtype=dtype), number)


Z = torch.randn(6, dtype=torch.cfloat)
SIX = torch.arange(6) % 2 > 0
NEEDS_GRAD = torch.ones(2, dtype=torch.double, requires_grad=True)
SQUARE = torch.ones(2, 2)
ONES = torch.ones(2, 2) > 0
ODD = {
    "conj": (SIX, Z.conj(), Z.conj()),
    "imag of conj": (SIX, Z.conj().imag, Z.conj().imag),
    "imag": (SIX, Z.imag, Z.imag),
    "one side is negative": (COND, X, torch.complex(X, X).conj().imag),
    "the other side is negative": (COND, torch.complex(X, X).conj().imag, X),
    "gradient of one side": (COND, X, torch.tensor([3.0, 4.0], requires_grad=True)),
    "gradient of the other side": (COND, torch.tensor([3.0, 4.0], requires_grad=True), X),
    **{
        f"{scalar!r} {'before' if is_first else 'behind'}": (
            (COND, scalar, NEEDS_GRAD) if is_first else (COND, NEEDS_GRAD, scalar)
        )
        for scalar in (np.int64(5), np.float32(1.5), np.True_, np.complex64(1j))
        for is_first in (True, False)
    },
    "cond of floats": (X, X, X),
    **{
        f"cond that is {cond}": (cond, NEEDS_GRAD, NEEDS_GRAD)
        for cond in (True, 1.0, [True, False], np.ones(2, bool))
    },
    "sparse": (COND, X, X.to_sparse()),
    "nested": (ONES, torch.nested.nested_tensor([X, X]), SQUARE),
    "sparse rows": (ONES, SQUARE.to_sparse_csr(), SQUARE),
    "mkldnn": (ONES, SQUARE.to_mkldnn(), SQUARE),
}


@mark.parametrize("case", ODD)
def test_odd_operands_and_errors_are_torchs(case):
    te_select.where(COND, X, X)  # the next calls take the path with the fewest checks
    check(te_select.where, *ODD[case])


class Derived(torch.Tensor):
    """By torch's rule, results are of this type."""


class Answers(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.ones(3) if function is torch.where else super().__torch_function__(
            function, types, args, kwargs or {})  # fmt: skip


class KnowsAten(torch.Tensor):
    """A wrapper whose table has torch's own operators."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, requires_grad=requires_grad
        )

    def __init__(self, held, requires_grad=False):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is not torch.ops.aten.where.self:
            raise NotImplementedError(function)
        return function(*(each.held if isinstance(each, cls) else each for each in args))


def masked(**options):
    return torch.masked.masked_tensor(torch.tensor([1.0, 2.0]), COND, **options)


def nested(of, **options):
    return torch.nested.nested_tensor([of, of[:1]], **options)


@functools.cache
def jagged():
    held = nested(X, layout=torch.jagged)
    return held > 1, held, 0.0


SUBCLASSES = {
    "masked": lambda: (COND, masked(), masked()),
    "masked with gradients": lambda: (COND, masked(requires_grad=True), masked()),
    "masked and a number": lambda: (COND, masked(), 0.0),
    "masked and not": lambda: (COND, X, masked()),
    "nested": lambda: (nested(COND), nested(X), nested(X)),
    "nested with gradients": lambda: (nested(COND), nested(X, requires_grad=True), 0.0),
    "jagged": jagged,
    "derived": lambda: (COND, X.as_subclass(Derived), 0.0),
    "cond derived": lambda: (COND.as_subclass(Derived), X, X),
    "answers": lambda: (COND, X.as_subclass(Answers), 0.0),
    "cond answers": lambda: (COND.as_subclass(Answers), X, X),
    "knows aten": lambda: (COND, KnowsAten(X), 0.0),
    "knows aten, with gradients": lambda: (COND, KnowsAten(X, True), X),
    "a parameter": lambda: (COND, torch.nn.Parameter(X), 0.0),
    "not there yet": lambda: (COND, torch.nn.UninitializedParameter(), 0.0),
}


@mark.filterwarnings("ignore::UserWarning")
@FUNCTIONS
@mark.parametrize("case", SUBCLASSES)
def test_subclass_is_what_torch_makes_of_it(case, function, monkeypatch):
    monkeypatch.setattr("te_select.selecting.torch_operator.RECORDED_FROM", 0)

    def said(select):
        try:
            found = select(*SUBCLASSES[case]())
        except Exception as error:
            return type(error), str(error).splitlines()[0]
        return type(found), found.dtype, found.requires_grad, str(found).partition("grad_fn")[0]

    assert said(function) == said(torch.where)


@FUNCTIONS
@mark.parametrize("kind", [torch.Tensor.requires_grad_, torch.nn.Parameter])
@mark.parametrize("fewer, made", [(0, "_WhereBackward"), (1, "WhereBackward0")])
def test_operator_makes_the_gradients_of_many_elements(fewer, made, kind, function):
    side = torch.ones(torch_operator.RECORDED_FROM - fewer)
    found = function(side > 0, kind(side), 0.0)
    assert type(found.grad_fn).__name__ == made


with torch.inference_mode():
    OF_INFERENCE = torch.zeros(2)


def test_cond_alone_takes_no_out():
    with raises(TypeError):
        te_select.where(COND, out=X)


@mark.parametrize(
    "side, other, out, said",
    [
        (X, X, torch.zeros(2, requires_grad=True), "requires grad"),
        (X, X, OF_INFERENCE, "nference tensor"),
        (X, 0.0, OF_INFERENCE, "nference tensor"),
    ],
)
def test_out_is_refused_as_torch_does(side, other, out, said):
    te_select.where(COND, X, X)  # the next calls take the path with the fewest checks
    for select, y in ((torch.where, torch.as_tensor(other)), (te_select.where, other)):
        with raises(RuntimeError, match=said):
            select(COND, side, y, out=out)


def test_negated_out_holds_what_was_selected():
    out = torch._neg_view(torch.zeros(2))
    te_select.where(COND, X, X)  # the next calls take the path with the fewest checks
    for y in (-X, 0.0):
        te_select.where(COND, X, y, out=out)
        assert out.tolist() == torch.where(COND, X, y).tolist()


def test_tensor_of_inference_mode_is_written_within_it():
    with torch.inference_mode():
        te_select.where(COND, X, X, out=OF_INFERENCE)
    assert OF_INFERENCE.tolist() == X.tolist()


def test_array_beside_a_tensor_stays_an_array_in_later_calls(monkeypatch):
    monkeypatch.setattr("te_select.selecting.tensor_libraries._all_calls", {})
    cond, x = np.ones(20_000, bool), np.ones(20_000, "f4")
    with raises(TypeError):
        te_select.where(torch.from_numpy(cond), x, torch.from_numpy(x))
    assert type(te_select.where(cond, x, np.ones(20_000))) is np.ndarray  # Python converts x
