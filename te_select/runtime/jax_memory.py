"""Whether a tensor of tvm-ffi is the memory of a JAX array, which nobody may write.

JAX hands its memory over by a DLPack struct that says nothing of writing. Once tvm-ffi has wrapped
it, the one trace is the function in that struct which gives the memory back: it is JAX's own.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

import numpy as np
import tvm_ffi

from te_select.runtime.dlpack import DLTensor, capsule_pointer

_POINTER = ctypes.sizeof(ctypes.c_void_p)
_OBJECT = 3 * 8  # bytes of TVMFFIObject: reference counts, type, and the function that deletes it
_DELETER_AT = 2 * 8
_MANAGED_AT = _OBJECT + ctypes.sizeof(DLTensor)  # of a tensor made from DLPack: the struct


def holds(tensor: Any) -> bool:
    """Whether a `tvm_ffi.Tensor` is the memory of a JAX array."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "numpy"):  # not there, or being imported
        return False
    of_dlpack, of_jax = _known()
    address = tensor.__chandle__()
    if _pointer(address + _DELETER_AT) != of_dlpack:
        return False
    return _deleter(_pointer(address + _MANAGED_AT)) == of_jax


@functools.cache
def _known() -> tuple[int, int]:
    """The functions by which tvm-ffi deletes what it wraps, and by which JAX takes memory back.

    Both are read from an example; zeros where the structs are laid out otherwise.
    """
    jax = sys.modules["jax"]
    sample = np.zeros(1, np.uint8)
    wrapped = tvm_ffi.from_dlpack(sample)
    address = wrapped.__chandle__()
    managed = DLTensor.from_address(_pointer(address + _MANAGED_AT))
    if managed.data != sample.ctypes.data:
        return 0, 0
    capsule = jax.numpy.zeros(1, np.uint8, device=jax.devices("cpu")[0]).__dlpack__()
    return _pointer(address + _DELETER_AT), _deleter(capsule_pointer(capsule))


def _deleter(managed: int) -> int:
    """The function of a ``DLManagedTensor`` that gives its memory back."""
    return _pointer(managed + ctypes.sizeof(DLTensor) + _POINTER)


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0
