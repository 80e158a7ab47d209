"""Tensors of other libraries than NumPy: which library a call is for."""

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


by_type: dict[type, Callable[..., Any]] = {}
"""For tensors of these types, the function that selects them."""


def find(values: Iterable[Any]) -> Callable[..., Any] | None:
    """The function that selects tensors of a library, where one of the values is its tensor."""
    given = [value for value in values if value is not None]
    for value in given:
        if type(value) in by_type:
            return by_type[type(value)]
    for name, (kind, module) in _MODULES.items():
        library = sys.modules.get(name)
        tensor = getattr(library, kind, None)  # a library that is being imported lacks it
        found = [type(v) for v in given if tensor is not None and isinstance(v, tensor)]
        if found:
            function: Callable[..., Any] = importlib.import_module(module).where
            by_type.update(dict.fromkeys(found, function))
            return function
    return None
