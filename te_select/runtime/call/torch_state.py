"""Refuses tensors whose use torch records: gradients, tangents, and traces.

A kernel reads and writes memory without telling torch. If torch is recording what happens to a
tensor, the record would silently be wrong. So such a tensor is refused.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

from te_select.errors import ArgumentError, DTypeError, is_a
from te_select.operator.dtypes import ElementType

_ADVICE = "pass {0}.detach(), call under torch.no_grad(), or use te_select.torch.where"


class TorchState:
    """What a call needs from torch, once the program has imported it."""

    tensor: Any = None
    empty: Any
    mark_written: Callable[[tuple[Any, ...]], None]
    records: Callable[[], bool]
    is_tracing: Callable[[], bool]
    active_modes: Callable[[], int]
    forward_ad: Any

    def find(self) -> None:
        """Look for torch, without importing it."""
        torch = sys.modules.get("torch")
        if torch is None or self.tensor is not None:
            return
        self.empty = torch.empty
        self.records = torch.is_grad_enabled
        # These are private, and 10x faster than the public functions.
        self.mark_written = torch._C._increment_version
        self.is_tracing = torch._C._is_tracing
        self.active_modes = torch._C._len_torch_dispatch_stack
        self.forward_ad = torch.autograd.forward_ad  # whose _current_level is -1 outside
        self.tensor = torch.Tensor

    def may_watch(self, *tensors: Any) -> bool:
        """Whether torch may be recording what happens to some of its tensors."""
        return bool(
            self.is_tracing()
            or self.active_modes()
            or self.forward_ad._current_level >= 0
            or (any(tensor.requires_grad for tensor in tensors) and self.records())
        )


STATE = TorchState()


def check_unwatched(operands: Mapping[str, Any]) -> None:
    """Refuse tensors whose use torch records.

    Parameters
    ----------
    operands
        The arguments by name; some of them are tensors of torch.

    Raises
    ------
    ArgumentError
        If one requires grad and gradients are recorded, is a dual number of forward-mode
        differentiation, or a tracer is at work.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    tensors = {name: value for name, value in operands.items() if is_a(value, torch.Tensor)}
    if not tensors:
        return
    _check_gradients(torch, tensors)
    if torch.jit.is_tracing() or _is_traced_by_a_mode(torch):
        raise ArgumentError(
            "a kernel cannot be traced (torch.jit.trace, make_fx): a tracer would record "
            "uninitialized memory in its place; trace torch.where, or call the kernel outside"
        )


def _check_gradients(torch: Any, tensors: Mapping[str, Any]) -> None:
    if torch.is_grad_enabled():
        for name, tensor in tensors.items():
            if tensor.requires_grad and name != "out":  # out is checked wherever it is written
                raise ArgumentError(
                    f"{name} requires grad, and a kernel records no gradients; "
                    f"{_ADVICE.format(name)}"
                )
    forward_ad = torch.autograd.forward_ad
    if forward_ad._current_level >= 0:
        for name, tensor in tensors.items():
            if forward_ad.unpack_dual(tensor).tangent is not None:
                raise ArgumentError(
                    f"{name} has a tangent of forward-mode differentiation, and a kernel computes "
                    f"none; pass torch.autograd.forward_ad.unpack_dual({name}).primal"
                )


def _is_traced_by_a_mode(torch: Any) -> bool:
    """Whether make_fx, or a tool built on it, records operators."""
    modes = sys.modules.get("torch.fx.experimental.proxy_tensor")
    if modes is None:
        return False
    stack = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    return any(isinstance(mode, modes.ProxyTorchDispatchMode) for mode in stack)


def torch_dtype(element: ElementType) -> Any:
    """The type that torch has for an element type.

    Raises
    ------
    DTypeError
        If it has none.
    """
    found = getattr(sys.modules["torch"], element.name, None)
    if found is None:
        raise DTypeError(
            f"torch has no element type {element.name} for the result; pass out, as an array of "
            "NumPy"
        )
    return found
