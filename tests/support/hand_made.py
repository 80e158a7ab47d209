"""Tensors of our own, passed on by DLPack as no real library would do it."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

CPU, CUDA = 1, 2
READ_ONLY = 1
_CODES = {"b": 6, "i": 0, "u": 1, "f": 2, "c": 5}


class Tensor(ctypes.Structure):
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


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_kept: list[Any] = []  # a taken capsule's memory may be read at any later time


class HandMade:
    """A tensor over an array's memory.

    Parameters
    ----------
    array
        Whose memory it is, and what it is where nothing else is said.
    shape, strides
        Extents, and steps in elements; no strides are a null pointer.
    offset
        Bytes before the first element, by which the data pointer is put back.
    data
        The data pointer.
    device
        Type of the device, both of the tensor and in words.
    dtype
        ``(code, bits, lanes)``.
    flags
        Of a versioned capsule; None for an old one.
    """

    def __init__(
        self,
        array: np.ndarray,
        *,
        shape: tuple[int, ...] | None = None,
        strides: tuple[int, ...] | None = None,
        offset: int = 0,
        data: int | None = None,
        device: int = CPU,
        dtype: tuple[int, int, int] | None = None,
        flags: int | None = None,
    ) -> None:
        extents = array.shape if shape is None else shape
        self.device = device
        self._versioned = flags is not None
        self.managed = _Versioned(1, 0, flags=flags) if flags is not None else _Managed()
        tensor = self.managed.tensor
        tensor.data = array.ctypes.data - offset if data is None else data
        tensor.device_type, tensor.ndim, tensor.byte_offset = device, len(extents), offset
        tensor.code, tensor.bits, tensor.lanes = dtype or (
            _CODES[array.dtype.kind],
            8 * array.itemsize,
            1,
        )
        tensor.shape = (ctypes.c_int64 * len(extents))(*extents)
        if strides is not None:
            tensor.strides = (ctypes.c_int64 * len(strides))(*strides)
        self.tensor = tensor
        _kept.append((array, self.managed))

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.device, 0)

    def __dlpack__(self, **options: Any) -> Any:
        if not self._versioned and options:
            raise TypeError("a producer older than DLPack 1.0 knows no options")
        name = b"dltensor_versioned" if self._versioned else b"dltensor"
        return _new_capsule(ctypes.addressof(self.managed), name, None)


class _Any(ctypes.Structure):
    """``TVMFFIAny`` that holds a ``DLTensor*``."""

    _fields_ = (("index", ctypes.c_int32), ("pad", ctypes.c_uint32), ("value", ctypes.c_void_p))


def call(kernel: Any, *operands: HandMade) -> int:
    """Call a kernel's exported function as C does, and return its status."""
    arguments = (_Any * 4)(*(_Any(7, 0, ctypes.addressof(each.tensor)) for each in operands))
    function = ctypes.CDLL(str(kernel.path))[f"__tvm_ffi_{kernel.workload.name}"]
    status: int = function(None, arguments, 4, ctypes.byref(_Any()))
    return status
