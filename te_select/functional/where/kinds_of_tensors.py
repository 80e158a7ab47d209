"""Tensors of other libraries than NumPy: which library a call is for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

_MODULES = {
    "torch": ("Tensor", "te_select.functional.where.of_torch"),
    "jax": ("Array", "te_select.functional.where.of_jax"),
    "cupy": ("ndarray", "te_select.functional.where.of_cupy"),
}


def find(values: Iterable[Any]) -> ModuleType | None:
    """The module that selects tensors of a library, where one of the values is its tensor."""
    given = [value for value in values if value is not None]
    for name, (kind, module) in _MODULES.items():
        library = sys.modules.get(name)
        tensor = getattr(library, kind, None)  # a library that is being imported lacks it
        if tensor is not None and any(isinstance(value, tensor) for value in given):
            return importlib.import_module(module)
    return None
