"""Select by kernels for torch tensors on the CPU, in calls that torch does not record."""

import functools
from typing import Any

import torch

from te_select.errors import caught
from te_select.operator import family
from te_select.operator.broadcast import joined
from te_select.operator.stages import stages
from te_select.runtime.call.torch_state import STATE
from te_select.selecting.kernels import library
from te_select.selecting.torch_layout import is_ordinary, strides

_TENSOR = torch.Tensor
_REAL_NUMBERS = (int, float, bool)  # not every type has a complex one to go to
_NUMBERS = (*_REAL_NUMBERS, complex)
_WIDTHS = (1, 2, 4, 8, 16)

STATE.find()
# These functions are private. The public ones take 10x the time.
_tracing, _modes = STATE.is_tracing, STATE.active_modes
_interpreters = torch._C._functorch.peek_interpreter_stack
_forward_ad = STATE.forward_ad
_in_inference_mode = torch.is_inference_mode_enabled

_mark_written = STATE.mark_written
_empty, _empty_like = torch.empty, torch.empty_like  # the latter takes half the time

_NO_ENTRY = (None, ())

# The functions that have served a call, with the weak scalars (NEP 50), by element type.
_entries: dict[Any, Any] = {}


def by_kernels(cond: Any, x: Any, y: Any, out: Any) -> Any:
    """Select by kernels; None if they do not take the operands, or if torch records the call."""
    found = common_call(cond, x, y, out)
    return after_all_checks(cond, x, y, out) if found is None else found


def is_recorded(*sides: Any) -> bool:
    """Whether torch may record a call with these sides, for gradients or for a tracer."""
    tensors = [side for side in sides if type(side) in (_TENSOR, torch.nn.Parameter)]
    return STATE.may_watch(*tensors) or _interpreters() is not None


def is_watched() -> bool:
    """Whether a tracer, a mode or a transformation of torch.func sees the calls of operators."""
    return bool(_tracing() or _modes() or _interpreters() is not None)


def common_call(cond: Any, x: Any, y: Any, out: Any = None) -> Any:  # noqa: PLR0911 - for speed
    """Do a common call with the fewest checks, else return None; the C half checks the rest.

    What a call with out= needs is in one function: five calls of others would take a sixth of it.
    """
    side = x if type(x) is _TENSOR else y
    if type(cond) is not _TENSOR or type(side) is not _TENSOR:
        return None
    entry, numbers = _entries.get(side.dtype, _NO_ENTRY)
    if (
        entry is None
        or (side.requires_grad or side.is_neg() or _tracing() or _modes())
        or (_interpreters() is not None or _forward_ad._current_level >= 0)
    ):
        return None
    if type(x) is not type(y):
        if type(x) is _TENSOR:
            y = _converted(y, side.dtype) if type(y) in numbers else None
        else:
            x = _converted(x, side.dtype) if type(x) in numbers else None
        if x is None or y is None:
            return None
    elif y.dtype is not x.dtype or y.requires_grad or y.is_neg():
        return None
    if out is None:
        return _called(entry, cond, x, y, None, x.dtype)
    if type(out) is not _TENSOR or out.dtype is not side.dtype:
        return None
    if out.requires_grad or out.is_neg():
        return None
    # A tensor of inference mode is closed outside of that mode.
    if (not out.is_inference() or _in_inference_mode()) and entry(cond, x, y, out) >= 0:
        _mark_written((out,))
        return out
    return None


def _made_for(cond: Any, x: Any, y: Any, dtype: torch.dtype) -> Any:
    """A tensor of a type for the result; None if the operands do not broadcast."""
    compact = x.is_contiguous() and y.is_contiguous() and cond.is_contiguous()
    shape = x.shape
    # Along an axis of extent 1, a compact tensor may have any stride, which torch looks at.
    as_x = dtype is x.dtype and compact and cond.shape == shape
    if as_x and y.numel() <= x.numel() and 1 not in shape:
        return _empty_like(x)  # the C half refuses it if y is of a shape that does not fit
    shape = joined(cond.shape, shape, y.shape)
    if shape is None:
        return None
    if compact and (1 not in shape or all(map(is_ordinary, (cond, x, y)))):
        return _empty(shape, dtype=dtype)
    return torch.empty_strided(shape, strides(shape, (cond, x, y)), dtype=dtype)


def _called(entry: Any, cond: Any, x: Any, y: Any, out: Any, dtype: torch.dtype) -> Any:
    """Call the function; None if it refuses the tensors, for example those on a device."""
    try:
        made = _made_for(cond, x, y, dtype) if out is None else out
    except caught(RuntimeError):  # a sparse tensor has no strides
        return None
    if made is None or entry(cond, x, y, made) < 0:
        return None
    if out is not None:
        _mark_written((out,))
    return made


@functools.cache
def _entry() -> Any:
    """The function of the kernels, which must be there; None if torch cannot pass tensors on."""
    return library.function_of_tensors(family.FUNCTION, _TENSOR)


def _is_plain(value: Any) -> bool:
    """Whether a tensor is in memory of the CPU, and its bits are its elements."""
    return (
        type(value) is _TENSOR
        and value.device.type == "cpu"
        and value.layout is torch.strided
        and not value.is_conj()
        and not value.is_neg()
        and not value.is_quantized
        and not value.is_nested
    )


def after_all_checks(cond: Any, x: Any, y: Any, out: Any) -> Any:
    """Select by kernels after all checks; None if they do not take the operands."""
    tensors = [side for side in (x, y) if type(side) is _TENSOR]
    odd = [side for side in (x, y) if type(side) not in (_TENSOR, *_NUMBERS)]
    # Numbers alone are left to torch, which has rules of its own for them.
    if not tensors or odd or not all(map(_is_plain, (cond, *tensors))):
        return None
    dtype = torch.result_type(x, y)
    if is_recorded(*tensors) or cond.dtype is not torch.bool or dtype.itemsize not in _WIDTHS:
        return None
    then, else_ = _side(x, dtype), _side(y, dtype)
    if then is None or else_ is None or not (out is None or _may_be_written(out, dtype)):
        return None
    if not library.fetch(family.part_of_width(dtype.itemsize)) or (entry := _entry()) is None:
        return None
    found = _called(entry, cond, _bare(then), _bare(else_), out, dtype)
    if found is not None and not dtype.is_complex:  # a complex tensor may be a conjugated view
        weak = tuple(kind for kind in _REAL_NUMBERS if type_beside(kind(), dtype) is dtype)
        _entries[dtype] = entry, weak
    return found


def type_beside(number: complex, dtype: torch.dtype) -> torch.dtype:
    """As ``torch.result_type`` of a number and a tensor, but torch.compile can trace it."""
    if isinstance(number, bool) or dtype.is_complex:
        return dtype
    if isinstance(number, int):
        return torch.int64 if dtype is torch.bool else dtype
    real = dtype if dtype.is_floating_point else torch.get_default_dtype()
    return real if isinstance(number, float) else real.to_complex()


def _side(side: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """An operand in the type of the result, or in one that kernels convert; else None."""
    is_staged = type(side) is _TENSOR and (side.dtype, dtype) in _staged()
    return side if is_staged and library.fetch(family.STAGES) else _converted(side, dtype)


@functools.cache
def _staged() -> set[tuple[Any, Any]]:
    """The types that kernels convert, with the types that they make of them."""
    given = [stage for stage in stages() if stage.target != "bool" and stage.source != "float16"]
    return {(getattr(torch, s.source, None), getattr(torch, s.target, None)) for s in given}


def _converted(side: Any, dtype: torch.dtype) -> torch.Tensor | None:
    """An operand in the element type of the result; None for a number that torch refuses."""
    if type(side) is _TENSOR:
        return side if side.dtype is dtype else side.to(dtype)
    try:
        return torch.scalar_tensor(side, dtype=dtype)
    except caught(RuntimeError, OverflowError):  # out of range, or of a type that no number has
        return None


def _may_be_written(out: Any, dtype: torch.dtype) -> bool:
    """Whether the C half may write to a tensor of the result's type, if its shape is right."""
    if not _is_plain(out) or out.dtype is not dtype or out.requires_grad:
        return False
    return not out.is_inference() or _in_inference_mode()  # torch forbids it outside of that mode


def _bare(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.requires_grad else tensor
