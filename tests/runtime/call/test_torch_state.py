"""What torch records is never cut silently: gradients, tangents, traces."""

import numpy as np
from pytest import fixture, importorskip, mark, raises

from te_select import ArgumentError, SelectError
from te_select.runtime.call import torch_state
from tests.support import flat
from tests.support.runtime_standin import kernel

torch = importorskip("torch")
W = flat(8)


def operands():
    cond = torch.tensor([1, 0] * 4, dtype=torch.bool)
    return {"cond": cond, "then": torch.ones(8), "else_": torch.zeros(8)}


@fixture(params=["tensors", "mixed"])
def call(request):
    """A kernel, called with tensors only, or with tensors and an array."""

    def called(cond, then, else_, **out):
        if request.param == "mixed":
            cond = cond.numpy()
        return kernel(W)(cond, then, else_, **out)

    return called


@mark.parametrize("name", ["then", "else_"])
def test_tensor_that_requires_grad_is_refused_with_what_to_do(call, name):
    given = operands()
    given[name].requires_grad_()
    with raises(ArgumentError, match=rf"{name} requires grad.*{name}\.detach\(\)"):
        call(**given)
    out = torch.full((8,), 7.0)
    with raises(ArgumentError, match="requires grad"):
        call(**given, out=out)
    assert (out == 7).all()


@mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_where_no_gradients_are_recorded_it_is_taken(call, context):
    cond, then, else_ = operands().values()
    with context():
        got = call(cond, then.requires_grad_(), torch.nn.Parameter(else_))
    assert got.tolist() == [1.0, 0.0] * 4 and not got.requires_grad


def test_out_that_requires_grad_is_refused(call):
    for out in (torch.empty(8, requires_grad=True), torch.empty(8, requires_grad=True) * 1):
        with raises(ArgumentError, match="out is a Tensor that cannot be written"):
            call(**operands(), out=out)


@mark.parametrize("name", ["then", "else_", "out"])
def test_tangent_of_forward_mode_is_refused(call, name):
    forward_ad = torch.autograd.forward_ad
    given = operands()
    given["out"] = torch.empty(8)
    with forward_ad.dual_level():
        given[name] = forward_ad.make_dual(given[name], torch.ones(8))
        with raises(ArgumentError, match=f"{name} has a tangent"):
            call(**given)
        given[name] = forward_ad.unpack_dual(given[name]).primal
        assert call(**given).tolist() == [1.0, 0.0] * 4


def test_jit_trace_is_refused(call):
    with raises(ArgumentError, match="cannot be traced"):
        torch.jit.trace(call, (*operands().values(),), check_trace=False)


@mark.parametrize("mode", ["real", "symbolic", "fake"])
def test_make_fx_is_refused(mode):
    from torch.fx.experimental.proxy_tensor import make_fx

    with raises(SelectError):
        make_fx(kernel(W), tracing_mode=mode)(*operands().values())


def test_transformations_of_functions_are_refused():
    cond, then, else_ = operands().values()
    with raises(SelectError):
        torch.func.grad(lambda t: kernel(W)(cond, t, else_).sum())(then)


def test_mode_that_only_looks_on_is_harmless():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Looking(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Looking():
        assert kernel(W)(**operands()).tolist() == [1.0, 0.0] * 4


def test_torch_watches_no_plain_tensors_or_ungraded_ones():
    """What it watches takes the way with all checks."""
    torch_state.STATE.find()
    may_watch = torch_state.STATE.may_watch
    plain, wanted = torch.ones(8), torch.ones(8, requires_grad=True)
    assert not may_watch(plain, plain) and may_watch(plain, wanted)
    with torch.no_grad():
        assert not may_watch(plain, wanted)


def test_masked_array_is_refused_with_what_to_use():
    masked = np.ma.masked_array(np.ones(8, "f4"), mask=[True] * 8)
    cond, then = np.ones(8, bool), np.ones(8, "f4")
    for given in ((cond, masked, then), (np.ma.masked_array(cond), then, then)):
        with raises(ArgumentError, match=r"np\.ma\.where.*\.filled\(\)"):
            kernel(W)(*given)
    with raises(ArgumentError, match=r"np\.ma\.where"):
        kernel(W)(cond, then, then, out=masked)
    assert masked.mask.all()
