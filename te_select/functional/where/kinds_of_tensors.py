"""Finds the library of a call whose operands are tensors of torch, JAX or CuPy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any

_MODULES = {
    "torch": ("Tensor", "te_select.functional.where.of_torch"),
    "jax": ("Array", "te_select.functional.where.of_jax"),
    "cupy": ("ndarray", "te_select.functional.where.of_cupy"),
}
_PROTOCOL = "__torch_function__"  # what stands for a tensor has it, such as a proxy of torch.fx

by_type: dict[type, Callable[..., Any]] = {}
"""The functions that select, by the types of tensors that were met so far."""


def find(values: Iterable[Any]) -> Callable[..., Any] | None:
    """The function that selects tensors of the library of one of the values; None for arrays."""
    given = [value for value in values if value is not None]
    for value in given:
        if type(value) in by_type:
            return by_type[type(value)]
    for name, (kind, module) in _MODULES.items():
        library = sys.modules.get(name)
        tensor = getattr(library, kind, None)  # a library that is being imported lacks it
        kinds = [type(v) for v in given if tensor is not None and isinstance(v, tensor)]
        found = kinds or [type(v) for v in given if name == "torch" and hasattr(type(v), _PROTOCOL)]
        if found:
            function: Callable[..., Any] = importlib.import_module(module).where
            by_type.update(dict.fromkeys(found, function))
            return function
    return None
