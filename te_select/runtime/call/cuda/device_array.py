"""Arrays in memory of a CUDA device, passed on by DLPack; they need only the driver."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from te_select.operator.dtypes import ElementType
from te_select.runtime.call.cuda.driver import Memory
from te_select.runtime.call.dlpack import CUDA, Deleter, DLManagedTensor


class DeviceArray:
    """A compact array on a CUDA device.

    Parameters
    ----------
    memory
        The memory of its elements.
    element, shape
        The elements' type, and the extents.
    offset
        Bytes of the memory before the first element.
    """

    def __init__(
        self, memory: Memory, element: ElementType, shape: tuple[int, ...], offset: int = 0
    ) -> None:
        self.memory = memory
        self.element = element
        self.shape = shape
        self.offset = offset

    @classmethod
    def empty(cls, element: ElementType, shape: tuple[int, ...], device: int = 0) -> DeviceArray:
        """Allocate an array."""
        return cls(Memory(math.prod(shape) * element.width, device), element, shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements."""
        return math.prod(self.shape) * self.element.width

    def write(self, array: npt.NDArray[Any]) -> None:
        """Copy a compact NumPy array of the same size in bytes to the device."""
        if array.nbytes:
            self.memory.write(array.ctypes.data, array.nbytes, self.offset)

    def read(self, array: npt.NDArray[Any]) -> None:
        """Copy the elements to a compact NumPy array of the same size in bytes."""
        if array.nbytes:
            self.memory.read(array.ctypes.data, array.nbytes, self.offset)

    def numpy(self, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """The elements as a new NumPy array."""
        array = np.empty(self.shape, dtype)
        self.read(array)
        return array

    def __dlpack_device__(self) -> tuple[int, int]:
        """The device, in DLPack's form."""
        return CUDA, self.memory.device

    def __dlpack__(self, **_options: Any) -> Any:
        """A capsule that keeps the memory alive; streams need not wait, as no work is pending."""
        managed = DLManagedTensor()
        rank = len(self.shape)
        shape = (ctypes.c_int64 * max(rank, 1))(*self.shape)
        tensor = managed.tensor
        tensor.data = self.memory.address
        tensor.device_type, tensor.device_id = self.__dlpack_device__()
        tensor.ndim = rank
        tensor.code = self.element.code
        tensor.bits = self.element.bits
        tensor.lanes = 1
        tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
        tensor.byte_offset = self.offset
        managed.deleter = _release
        address = ctypes.addressof(managed)
        _exported[address] = (managed, shape, self.memory)
        return _new_capsule(address, _NAME, _drop_capsule)


_NAME = b"dltensor"
_exported: dict[int, Any] = {}


def _forget(address: int) -> None:
    _exported.pop(address, None)


_release = Deleter(_forget)
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes = (ctypes.c_void_p, ctypes.c_char_p)
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _drop(capsule: int) -> None:
    """Free a capsule that nobody took; a capsule that was taken has another name."""
    if _is_valid(capsule, _NAME):
        _forget(_pointer_of(capsule, _NAME))


_drop_capsule = _Destructor(_drop)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _Destructor)(
    ("PyCapsule_New", ctypes.pythonapi)
)
