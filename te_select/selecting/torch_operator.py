"""The PyTorch operator ``te_select::where``: Select with gradients, vmap and tracing.

The derivative of Select is Select: ``where(cond, grad, 0)`` for x, ``where(cond, 0, grad)`` for y,
summed over their broadcast axes. ``grad * mask`` would be wrong: an unselected inf in the gradient
would become NaN.
"""

import itertools
import math
import sys
from typing import Any

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd.function import _SingleLevelFunction

from te_select.operator.broadcast import joined
from te_select.selecting.torch_kernels import (
    after_all_checks,
    by_kernels,
    common_call,
    is_recorded,
    is_watched,
    type_beside,
)

# Elements from which on the operator, whose gradients are Python's, is faster than torch.where.
# Forward and backward take 65 us by it, and by torch.where at 40,000 float32 or 60,000 float64
# (2 virtual cores of Zen 5).
RECORDED_FROM = 1 << 16

__all__ = ["common_call", "of_torch", "where"]

_functorch = torch._C._functorch
_library = torch.library.Library("te_select", "DEF")
_library.define(
    "where(Tensor cond, Tensor x, Tensor y) -> Tensor", tags=torch.Tag.pt2_compliant_tag
)
_library.define("where.out(Tensor cond, Tensor x, Tensor y, *, Tensor(a!) out) -> ()")
_operator, _operator_out = torch.ops.te_select.where.default, torch.ops.te_select.where.out


def where(cond: Any, x: Any, y: Any, *, out: Any = None, opaque: bool = False) -> Any:
    """Select element by element: ``out[i] = x[i] if cond[i] else y[i]``, as torch.where does.

    Parameters
    ----------
    cond
        A boolean tensor, of any shape that broadcasts with the others.
    x, y
        Tensors, or numbers; ``torch.result_type`` of them is the element type of the result.
    out
        The tensor to write, or None. As with torch.where, no gradient passes through it.
    opaque
        Whether torch.compile and torch.export keep the operator, so that a kernel of te-select
        runs. By default they see ``aten.where``, which Inductor fuses with other operations.

    Returns
    -------
    torch.Tensor
        out, or a new tensor.

    Raises
    ------
    Exception
        Whatever torch.where raises.

    Notes
    -----
    ``torch.where``; the operator is ``torch.ops.te_select.where``.
    """
    compiling = torch.compiler.is_compiling()
    if not compiling:
        found = by_kernels(cond, x, y, out)
        if found is not None:
            return found
    if out is not None:
        return _into_out(cond, x, y, out)
    if compiling and not opaque:
        return torch.where(cond, x, y)
    return _by_operator(cond, x, y)


def of_torch(*args: Any, out: Any = None) -> Any:
    """Do a call of `te_select.where` with tensors as torch.where does.

    Parameters
    ----------
    args
        cond, or cond, x and y. They are tensors; x and y may be numbers.
    out
        The tensor to write, or None.

    Returns
    -------
    torch.Tensor
        out, or a new tensor. The operator does calls that torch records. torch.where itself does
        those with tensors that are on a device, or whose bits are not their values.

    Raises
    ------
    Exception
        Whatever torch.where raises.

    Notes
    -----
    ``torch.where``; ``torch.result_type`` for the element type.
    """
    if len(args) != 3:  # noqa: PLR2004 - cond, x, y
        return torch.where(*args) if out is None else torch.where(*args, out=out)
    cond, x, y = args
    recorded = is_recorded(x, y)
    found = None if recorded else after_all_checks(cond, x, y, out)
    if found is not None:
        return found
    if out is not None:
        return _into_out(cond, x, y, out)
    return _by_operator(cond, x, y) if recorded else torch.where(cond, x, y)


def _by_operator(cond: Any, x: Any, y: Any) -> Any:
    """Call the operator, or torch.where for what it does not take, or does later than that."""
    in_forward_mode = torch.autograd.forward_ad._current_level >= 0  # which leaves it to torch
    if in_forward_mode or not _is_taken(cond, x, y):
        return torch.where(cond, x, y)
    if not torch.compiler.is_compiling() and (_is_small(cond, x, y) or _has_escaped(cond, x, y)):
        return torch.where(cond, x, y)  # which says of the latter that it has escaped
    _know_shardings()
    return _operator(cond, _tensor(x, y), _tensor(y, x))


def _is_small(cond: Any, *sides: Any) -> bool:
    """Whether torch.where is faster, and no tracer, device or torch.func is to see this."""
    if is_watched() or any(map(_is_divided, (cond, *sides))):
        return False
    shapes = [side.shape for side in sides if isinstance(side, torch.Tensor)]
    shape = joined(cond.shape, *shapes)
    return shape is not None and math.prod(shape) < RECORDED_FROM


def _into_out(cond: Any, x: Any, y: Any, out: Any) -> Any:
    """Call torch.where with out, which takes tensors only."""
    if _is_taken(cond, x, y):
        x, y = _tensor(x, y), _tensor(y, x)
    return torch.where(cond, x, y, out=out)


def _has_escaped(*values: Any) -> bool:
    """Whether one is a tensor from inside of torch.func.vmap or jvp, and this is outside."""
    wrapped = any(
        isinstance(value, torch.Tensor) and _functorch.is_functorch_wrapped_tensor(value)
        for value in values
    )
    return wrapped and _functorch.peek_interpreter_stack() is None


def _know_shardings() -> None:
    """Register the sharding rule once DTensor is there; to import it here would take 0.7 s."""
    if "torch.distributed.tensor" in sys.modules:
        from te_select.selecting import torch_sharding  # noqa: F401, PLC0415


def _is_divided(tensor: Any) -> bool:
    """Whether a tensor is a DTensor."""
    there = sys.modules.get("torch.distributed.tensor")
    return there is not None and isinstance(tensor, there.DTensor)


def _is_known(tensor: torch.Tensor) -> bool:
    """Whether a tensor's type knows the operator; others may know torch's own alone."""
    kind = type(tensor)
    if kind in (torch.Tensor, torch.nn.Parameter):
        return not tensor.is_nested
    return kind.__module__.startswith("torch._subclasses.") or _is_divided(tensor)  # a tracer's


def _is_taken(cond: Any, x: Any, y: Any) -> bool:
    """Whether these are tensors, and a number at most; of other numbers torch has its own rules."""
    tensors = [isinstance(value, torch.Tensor) for value in (cond, x, y)]
    if not all(map(_is_known, itertools.compress((cond, x, y), tensors))):
        return False
    numbers = [isinstance(side, (bool, int, float, complex)) for side in (x, y)]
    return tensors[0] and (tensors[1] or tensors[2]) and sum(tensors) + sum(numbers) == len(tensors)


def _tensor(side: Any, other: Any) -> torch.Tensor:
    """A number as a tensor, of the type that the number has beside the other tensor."""
    if isinstance(side, torch.Tensor):
        return side
    return torch.full((), side, dtype=type_beside(side, other.dtype), device=other.device)


# ---- what it computes ----------------------------------------------------------------------------


def _on_cpu(cond: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found = by_kernels(cond, x, y, None)
    return torch.where(cond, x, y) if found is None else found


def _into(cond: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor) -> None:
    if by_kernels(cond, x, y, out) is None:
        torch.where(cond, x, y, out=out)


def _shape_of_out(
    cond: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor
) -> None:
    torch.where(cond, x, y, out=out)


# ---- derivatives ---------------------------------------------------------------------------------


class _Where(_SingleLevelFunction):  # type: ignore[misc] # of one level of torch.func's transformations
    """Select with its gradients."""

    @staticmethod
    def forward(
        ctx: Any, keys: Any, cond: torch.Tensor, x: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        """Select without recording gradients; keep cond, and the shapes and types of the sides."""
        ctx.save_for_backward(cond)
        ctx.sides = [(side.shape, side.dtype) for side in (x, y)]
        output: torch.Tensor = _below(keys, cond, x, y)
        return output

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Select the gradient for each side."""
        (cond,) = ctx.saved_tensors
        zero = torch.zeros((), dtype=grad.dtype, device=grad.device)
        selected = ((grad, zero), (zero, grad))
        gradients = [
            _of_type(_operator(cond, *pair), dtype).sum_to_size(shape).to(dtype) if needed else None
            for needed, pair, (shape, dtype) in zip(
                ctx.needs_input_grad[2:], selected, ctx.sides, strict=True
            )
        ]
        return None, None, *gradients


def _of_type(grad: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The part of a gradient that a side of this element type has."""
    return grad.real if grad.is_complex() and not dtype.is_complex else grad


def _below(keys: Any, *operands: torch.Tensor) -> torch.Tensor:
    """Call the operator's implementation below autograd."""
    with torch._C._AutoDispatchBelowAutograd():
        found: torch.Tensor = _operator.redispatch(
            keys & torch._C._after_autograd_keyset, *operands
        )
    return found


def _with_gradients(
    keys: Any, cond: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> torch.Tensor:
    _know_shardings()
    if torch.autograd.forward_ad._current_level >= 0:
        # Tangents may have tangents of an outer level, which only torch's own operators see.
        return torch.where(cond, x, y)
    if not (torch.is_grad_enabled() and torch._C._any_requires_grad(x, y)):
        return _below(keys, cond, x, y)
    with enable_single_level_autograd_function():
        found: torch.Tensor = _Where.apply(keys, cond, x, y)
    return found


def _into_without_gradients(
    keys: Any, cond: torch.Tensor, x: torch.Tensor, y: torch.Tensor, *, out: torch.Tensor
) -> None:
    """Write to out, through which no gradient passes; torch.where refuses to record the call.

    DTensor has no sharding rules for operators of others that write to an argument.
    """
    recorded = torch.is_grad_enabled() and torch._C._any_requires_grad(x, y, out)
    if recorded or _is_divided(out) or torch.autograd.forward_ad._current_level >= 0:
        torch.where(cond, x, y, out=out)
        return
    with torch._C._AutoDispatchBelowAutograd():
        _operator_out.redispatch(keys & torch._C._after_autograd_keyset, cond, x, y, out=out)


def _batched(
    info: Any, in_dims: tuple[int | None, ...], *inputs: torch.Tensor
) -> tuple[torch.Tensor, int]:
    """Select with the batch as the first axis of every operand that has one."""
    rank = max(value.ndim - (dim is not None) for value, dim in zip(inputs, in_dims, strict=True))
    aligned = []
    for value, dim in zip(inputs, in_dims, strict=True):
        if dim is None:
            aligned.append(value)
            continue
        moved = value.movedim(dim, 0)
        between = (1,) * (rank - moved.ndim + 1)
        aligned.append(moved.reshape(moved.shape[:1] + between + moved.shape[1:]))
    return _operator(*aligned), 0


_library.impl("where", _on_cpu, "CPU")
_library.impl("where", torch.where, "CUDA")
for _key in ("CPU", "CUDA"):
    _library.impl("where.out", _into, _key)
_library.impl("where", _with_gradients, "Autograd", with_keyset=True)
_library.impl("where.out", _into_without_gradients, "Autograd", with_keyset=True)
torch.library.register_fake("te_select::where", torch.where, lib=_library)
torch.library.register_fake("te_select::where.out", _shape_of_out, lib=_library)
torch.library.register_vmap("te_select::where", _batched, lib=_library)
