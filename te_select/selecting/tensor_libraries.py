"""Calls with tensors of torch, JAX, CuPy or dask: which library does them, and how."""

import sys
from collections.abc import Callable, Iterable
from typing import Any
from weakref import ref

import numpy as np

from te_select.base import forks
from te_select.errors import ArgumentError, asked, is_a

_TENSORS = {"torch": "Tensor", "jax": "Array", "cupy": "ndarray", "dask.array": "Array"}
_NO_RULES = (None, np.ndarray.__array_function__)
_PROTOCOL = "__torch_function__"  # what stands for a tensor has it, such as a proxy of torch.fx

# Functions of cond, x, y and out for the common calls, by the types of tensors met so far.
#
# They return None for other calls, which the function that `find` returns then does.
by_type: dict[type, Callable[..., Any]] = {}
_all_calls: dict[type, Callable[..., Any]] = {}
_no_tensors: set[ref[type]] = set()  # a WeakSet would lose a TypeError of a signal handler
_asked: list[Any] = []  # the types of tensors that these were compared with


def find(values: Iterable[Any]) -> Callable[..., Any] | None:
    """The function that selects tensors of the library of one of the values; None for arrays."""
    global _asked  # noqa: PLW0603 - a library may be imported later
    # A library that is being imported lacks its type.
    kinds = [getattr(sys.modules.get(name), kind, None) for name, kind in _TENSORS.items()]
    if kinds != _asked:
        _asked = kinds
        _no_tensors.clear()
    given = [value for value in values if value is not None and ref(type(value)) not in _no_tensors]
    for value in given:
        if type(value) in _all_calls:
            return _all_calls[type(value)]
    for name, tensor in zip(_TENSORS, kinds, strict=True):
        found = [type(v) for v in given if tensor is not None and is_a(v, tensor)]
        found = found or [type(v) for v in given if name == "torch" and asked(type(v), _PROTOCOL)]
        if found:
            every, common = _functions(name)
            _all_calls.update(dict.fromkeys(found, every))
            by_type.update(dict.fromkeys(found, common))
            return every
    no_proxies = (type(v) for v in given if asked(v, "__class__") is type(v))
    _no_tensors.update(ref(kind, _no_tensors.discard) for kind in no_proxies)
    return None


def _functions(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """What does all calls of a library, and what does the common ones."""
    if name == "torch":
        with forks.no_fork_during():
            from te_select.selecting import torch_operator  # noqa: PLC0415 - imports torch

        return torch_operator.of_torch, torch_operator.common_call
    if name == "dask.array":  # whose calls may be left to numpy.where
        return of_dask, lambda *_args, **_options: None
    return (of_jax, of_jax) if name == "jax" else (of_cupy, of_cupy)


def of_jax(*args: Any, out: Any = None) -> Any:
    """Select as jax.numpy.where does, inside ``jax.jit`` too.

    Up to 4 MB, XLA selects at the kernels' speed; beyond, they gain less than 2x. And no public
    function makes an array with the weak type, sharding and committed device of jax.numpy.where's.
    """
    if out is not None:
        raise ArgumentError(
            "out has no meaning for JAX, which never writes to an array; leave it out"
        )
    return sys.modules["jax"].numpy.where(*args)


def of_cupy(*args: Any, out: Any = None) -> Any:
    """Select as cupy.where does on the device of the arrays, with NumPy's promotion."""
    cupy = sys.modules["cupy"]
    found = cupy.where(*args)
    if out is None:
        return found
    if not isinstance(out, cupy.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; expected an array of CuPy")
    check_out(out, found)
    out[...] = found
    return out


def of_dask(*args: Any, out: Any = None) -> Any:
    """Select as dask.array.where does, by kernels, when the result is computed.

    NotImplemented if an operand of another library has a rule of its own.
    """
    import dask.array as da  # noqa: PLC0415 - optional

    from te_select.selecting import where  # noqa: PLC0415 - it imports this module

    if out is not None:
        raise ArgumentError("out has no meaning for dask, whose arrays are lazy; leave it out")
    if any(has_own_rule(each) and not isinstance(each, da.Array) for each in args):
        return NotImplemented  # numpy.where asks them in its order
    lacks_a_side = len(args) != 3 or any(each is None for each in args[1:])  # noqa: PLR2004
    if lacks_a_side or np.isscalar(args[0]):
        return da.where(*args)
    return da.core.elemwise(where, *args)


def has_own_rule(value: Any) -> bool:
    """Whether NumPy calls the ``__array_function__`` of the value's type."""
    kind = type(value)
    return kind is not np.ndarray and asked(kind, "__array_function__") not in _NO_RULES


def check_out(out: Any, result: Any) -> None:
    """Compare out with the result that is to be copied to it, an array of the same library.

    Raises
    ------
    TypeError
        If out has another element type.
    ValueError
        If out has another shape.
    """
    if np.dtype(out.dtype) != np.dtype(result.dtype):
        raise TypeError(f"out has element type {out.dtype}; expected {result.dtype}")
    if out.shape != result.shape:
        raise ValueError(f"out has shape {out.shape}; expected {result.shape}")
