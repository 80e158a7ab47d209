"""Finds the library of a call whose operands are tensors of torch, JAX, CuPy or dask."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

_MODULES = {
    "torch": ("Tensor", "te_select.numpy_where.torch_operator"),
    "jax": ("Array", "te_select.numpy_where.of_jax"),
    "cupy": ("ndarray", "te_select.numpy_where.of_cupy"),
    "dask.array": ("Array", "te_select.numpy_where.of_dask"),
}
_PROTOCOL = "__torch_function__"  # what stands for a tensor has it, such as a proxy of torch.fx

by_type: dict[type, Callable[..., Any]] = {}
"""Functions of cond, x, y and out for the common calls, by the types of tensors met so far.

They return None for other calls, which the function that `find` returns then does."""
_all_calls: dict[type, Callable[..., Any]] = {}
_no_tensors: set[ref[type]] = set()  # a WeakSet would lose a TypeError of a signal handler
_asked: list[Any] = []  # the types of tensors that these were compared with


def find(values: Iterable[Any]) -> Callable[..., Any] | None:
    """The function that selects tensors of the library of one of the values; None for arrays."""
    global _asked  # noqa: PLW0603 - a library may be imported later
    # A library that is being imported lacks its type.
    kinds = [getattr(sys.modules.get(name), kind, None) for name, (kind, _) in _MODULES.items()]
    if kinds != _asked:
        _asked = kinds
        _no_tensors.clear()
    given = [value for value in values if value is not None and ref(type(value)) not in _no_tensors]
    for value in given:
        if type(value) in _all_calls:
            return _all_calls[type(value)]
    for (name, (_, path)), tensor in zip(_MODULES.items(), kinds, strict=True):
        found = [type(v) for v in given if tensor is not None and isinstance(v, tensor)]
        found = found or [type(v) for v in given if name == "torch" and hasattr(type(v), _PROTOCOL)]
        if found:
            module = importlib.import_module(path)
            in_kind: Callable[..., Any] = module.in_kind
            _all_calls.update(dict.fromkeys(found, in_kind))
            by_type.update(dict.fromkeys(found, getattr(module, "common_call", in_kind)))
            return in_kind
    no_proxies = (type(v) for v in given if v.__class__ is type(v))
    _no_tensors.update(ref(kind, _no_tensors.discard) for kind in no_proxies)
    return None
