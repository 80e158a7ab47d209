"""Reads DLPack capsules: address, shape, strides, type and flags."""

import ctypes
import math
from dataclasses import dataclass
from typing import Any

from te_select.errors import caught

CUDA, CUDA_MANAGED = 2, 13  # kDLCUDA, kDLCUDAManaged
HOST_DEVICES = (1, 3, 11)  # kDLCPU, kDLCUDAHost, kDLROCMHost
CUDA_DEVICES = (CUDA, CUDA_MANAGED)
_DEVICE_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "managed CUDA"}
_MAX_VERSION = (1, 3)
_MOST_DIMS = 64
_ADDRESSES = 1 << 64
_READ_ONLY = 1  # DLPACK_FLAG_BITMASK_READ_ONLY


class WrongDeviceError(Exception):
    """A tensor in memory of another device; the message says which."""


@dataclass(frozen=True)
class Tensor:
    """A tensor, described by DLPack.

    Parameters
    ----------
    address
        Address of the first element; 0 if there is no memory.
    shape, strides
        Both in elements.
    dtype
        ``(code, bits, lanes)`` of ``DLDataType``.
    readonly
        Whether the producer forbids writing.
    device
        The number of the device.
    owner
        The capsule; the memory lives as long as it does.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: tuple[int, int, int]
    readonly: bool
    device: int
    owner: Any


class DLTensor(ctypes.Structure):
    """``DLTensor`` of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    """``DLManagedTensor`` of dlpack.h, what a capsule held before DLPack 1.0."""

    _fields_ = (("tensor", DLTensor), ("manager_ctx", ctypes.c_void_p), ("deleter", Deleter))


class DLManagedTensorVersioned(ctypes.Structure):
    """``DLManagedTensorVersioned`` of dlpack.h."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype = ctypes.c_char_p
_get_name.argtypes = (ctypes.py_object,)
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def read(
    value: Any, device_types: tuple[int, ...] = HOST_DEVICES, stream: int | None = None
) -> Tensor:
    """Read an object that has ``__dlpack__`` and ``__dlpack_device__``.

    Parameters
    ----------
    value
        A tensor of any library.
    device_types
        The kinds of memory that are allowed.
    stream
        The CUDA stream on which the memory will be used, in the form that ``__dlpack__`` takes;
        None for the default stream, and for memory of the CPU.

    Returns
    -------
    Tensor
        The description; nothing is copied.

    Raises
    ------
    WrongDeviceError
        If the memory is of another kind.
    Exception
        Any error that the object raises.
    """
    device = tuple(int(number) for number in value.__dlpack_device__())
    if device[0] not in device_types:
        kind = _DEVICE_NAMES.get(device[0], f"DLPack type {device[0]}")
        if device[0] in HOST_DEVICES:
            raise WrongDeviceError("in memory of the CPU")
        raise WrongDeviceError(f"on device {device[1]} of {kind}")
    where = {} if stream is None else {"stream": stream}
    try:
        capsule = value.__dlpack__(**where, max_version=_MAX_VERSION)
    except caught(TypeError):  # a producer older than DLPack 1.0
        capsule = value.__dlpack__(**where)
    name = _get_name(capsule)
    pointer = _get_pointer(capsule, name)
    readonly = False
    if name == b"dltensor_versioned":
        managed = DLManagedTensorVersioned.from_address(pointer)
        if managed.major != _MAX_VERSION[0]:
            raise BufferError(f"DLPack {managed.major}.{managed.minor} is not understood")
        readonly = bool(managed.flags & _READ_ONLY)
        tensor = managed.tensor
    elif name == b"dltensor":
        tensor = DLManagedTensor.from_address(pointer).tensor
    else:
        raise BufferError(f"{name!r} is not a DLPack capsule")
    shape, strides = _checked(tensor, device)
    return Tensor(
        tensor.data + tensor.byte_offset if tensor.data else 0,
        shape,
        strides,
        (tensor.code, tensor.bits, tensor.lanes),
        readonly,
        device[1],
        capsule,
    )


def _checked(tensor: DLTensor, device: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of a capsule that does not contradict its producer or itself."""
    if not 0 <= tensor.ndim <= _MOST_DIMS:
        raise BufferError(f"it has {tensor.ndim} dims; expected 0 to {_MOST_DIMS}")
    if tensor.ndim and not tensor.shape:
        raise BufferError(f"it has {tensor.ndim} dims and no shape")
    if (tensor.device_type, tensor.device_id) != device:
        raise BufferError(
            f"it is on device {(tensor.device_type, tensor.device_id)}, and __dlpack_device__ says "
            f"{device}"
        )
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    if any(extent < 0 for extent in shape):
        raise BufferError(f"its shape is {list(shape)}; expected no negative size")
    if tensor.strides and shape:
        strides = tuple(tensor.strides[: tensor.ndim])
    else:
        strides = tuple(math.prod(shape[k + 1 :]) for k in range(len(shape)))
    width = -(-tensor.bits * tensor.lanes // 8)
    reach = [stride * (extent - 1) * width for stride, extent in zip(strides, shape, strict=True)]
    first = (tensor.data or 0) + tensor.byte_offset
    last = first + sum(each for each in reach if each > 0) + width
    if 0 not in shape and (last > _ADDRESSES or first + sum(e for e in reach if e < 0) < 0):
        raise BufferError("its strides or its byte_offset lead out of the address space")
    return shape, strides


def capsule_pointer(capsule: Any) -> int:
    """The address of the struct that a DLPack capsule holds."""
    address: int = _get_pointer(capsule, _get_name(capsule))
    return address
