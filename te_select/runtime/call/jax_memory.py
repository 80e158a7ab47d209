"""Whether a tensor of tvm-ffi is the memory of a JAX array, which must not be written.

JAX passes its memory on by a DLPack struct that does not say whether it may be written. After
tvm-ffi has wrapped it, one trace is left: the struct's function that releases the memory is JAX's.
"""

import ctypes
import functools
import sys
from typing import Any

import numpy as np
import tvm_ffi

from te_select.runtime.call.dlpack import DLTensor, capsule_pointer

_POINTER = ctypes.sizeof(ctypes.c_void_p)
_OBJECT = 3 * 8  # bytes of TVMFFIObject: reference counts, type, and the function that deletes it
_DELETER_AT = 2 * 8
_MANAGED_AT = _OBJECT + ctypes.sizeof(DLTensor)  # offset of the DLPack struct in a tensor, in bytes


def holds(tensor: Any) -> bool:
    """Whether a `tvm_ffi.Tensor` is the memory of a JAX array."""
    jax = sys.modules.get("jax")
    if jax is None or not hasattr(jax, "numpy"):  # not imported, or just being imported
        return False
    of_dlpack, of_jax = _known()
    address = tensor.__chandle__()
    if not address or _pointer(address + _DELETER_AT) != of_dlpack:
        return False
    return _deleter(_pointer(address + _MANAGED_AT)) == of_jax


@functools.cache
def _known() -> tuple[int, int]:
    """The function by which tvm-ffi deletes such a tensor, and that by which JAX releases memory.

    Both are read from an array of JAX: tvm-ffi has a class for each form of DLPack's struct, and
    each library chooses its form. They are 0 if the structs have another layout.
    """
    jax = sys.modules["jax"]
    sample = jax.numpy.zeros(1, np.uint8, device=jax.devices("cpu")[0])
    capsule = sample.__dlpack__()
    memory = DLTensor.from_address(capsule_pointer(capsule)).data
    address = tvm_ffi.from_dlpack(sample).__chandle__()
    managed = _pointer(address + _MANAGED_AT)
    if DLTensor.from_address(managed).data != memory:
        return 0, 0
    return _pointer(address + _DELETER_AT), _deleter(capsule_pointer(capsule))


def _deleter(managed: int) -> int:
    """The function of a ``DLManagedTensor`` that releases its memory."""
    return _pointer(managed + ctypes.sizeof(DLTensor) + _POINTER)


def _pointer(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0
