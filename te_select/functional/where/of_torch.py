"""`te_select.where` of torch tensors: torch.where, by the kernels where torch need not look on."""

from __future__ import annotations

from typing import Any

import torch

from te_select.functional.where import library
from te_select.functional.where.family import part_of_width
from te_select.runtime.torch_state import STATE

_TENSOR = torch.Tensor
_NUMBERS = (int, float, complex, bool)
_WIDTHS = (1, 2, 4, 8, 16)


def where(*args: Any, out: Any = None) -> Any:
    """Select as torch.where does.

    Parameters
    ----------
    args
        cond, or cond, x and y: tensors, and numbers in the place of x and y.
    out
        Where to write, or None.

    Returns
    -------
    torch.Tensor
        out, or a new tensor. Tensors that are on a device, that torch records, or whose bits are
        not their values go to torch.where itself.

    Raises
    ------
    Exception
        What torch.where raises.

    Notes
    -----
    ``torch.where``; ``torch.result_type`` for the element type.
    """
    if len(args) != 3:  # noqa: PLR2004 - cond, x, y
        return torch.where(*args) if out is None else torch.where(*args, out=out)
    cond, x, y = args
    found = _by_kernels(cond, x, y, out)
    if found is not None:
        return found
    if out is not None:
        return torch.where(cond, x, y, out=out)
    return torch.where(cond, x, y)


def is_plain(value: Any) -> bool:
    """Whether a tensor is in memory of the CPU, and its bits are its elements."""
    return (
        type(value) is _TENSOR
        and value.device.type == "cpu"
        and value.layout is torch.strided
        and not value.is_conj()
        and not value.is_neg()
        and not value.is_quantized
        and not torch._C._functorch.is_functorch_wrapped_tensor(value)
    )


def _by_kernels(cond: Any, x: Any, y: Any, out: Any) -> Any:
    """Select by the kernels; None where they do not take the operands."""
    STATE.find()
    if not (is_plain(cond) and cond.dtype is torch.bool):
        return None
    tensors = [side for side in (x, y) if type(side) is _TENSOR]
    if not all(map(is_plain, tensors)) or not all(
        type(side) is _TENSOR or type(side) in _NUMBERS for side in (x, y)
    ):
        return None
    if STATE.may_watch(cond, *tensors) or torch.compiler.is_compiling():
        return None
    if not tensors:
        return None  # torch's own rules for two numbers
    dtype = torch.result_type(x, y)
    sides = [_converted(side, dtype) for side in (x, y)]
    shape = torch.broadcast_shapes(cond.shape, *(side.shape for side in sides))
    if out is None:
        made = torch.empty(shape, dtype=dtype)
    elif is_plain(out) and out.dtype is dtype and out.shape == shape and not out.requires_grad:
        made = out
    else:
        return None
    if not made.numel() or dtype.itemsize not in _WIDTHS:
        return None
    if not library.fetch(part_of_width(dtype.itemsize)):
        return None
    try:
        outcome = library.function("te_select_where")(cond, *map(_bare, sides), _bare(made))
    except (TypeError, ValueError, BufferError):  # overlapping, or not of DLPack
        return None
    if outcome < 0:
        return None
    if out is not None:
        STATE.mark_written((out,))
    return made


def _converted(side: Any, dtype: torch.dtype) -> torch.Tensor:
    if type(side) is _TENSOR:
        return side if side.dtype is dtype else side.to(dtype)
    return torch.tensor(side, dtype=dtype)


def _bare(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor.requires_grad else tensor
