"""`te_select.where` for torch tensors: by kernels, or by torch.where if torch records the call."""

from __future__ import annotations

from typing import Any

import torch

from te_select.functional.where import torch_operator
from te_select.functional.where.torch_kernels import after_all_checks, common_call, is_recorded

__all__ = ["common_call", "where"]


def where(*args: Any, out: Any = None) -> Any:
    """Select as torch.where does.

    Parameters
    ----------
    args
        cond, or cond, x and y. They are tensors; x and y may be numbers.
    out
        The tensor to write, or None.

    Returns
    -------
    torch.Tensor
        out, or a new tensor. torch.where itself does calls that torch records, and calls with
        tensors that are on a device, or whose bits are not their values.

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
    found = after_all_checks(cond, x, y, out)
    if found is not None:
        return found
    if out is not None:
        return torch_operator.into(cond, x, y, out)
    if is_recorded(x, y):
        return torch_operator.where(cond, x, y, opaque=True)
    return torch.where(cond, x, y)
