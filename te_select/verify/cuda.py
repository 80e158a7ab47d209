"""Calls a CUDA kernel with NumPy arrays, so that it can be compared with NumPy.

It needs only the driver. The memory around ``out`` is copied with it, so that a stray store is
detected.
"""

from typing import Any

import numpy as np

from te_select.errors import ArtifactError, SelectError
from te_select.operator.dtypes import ELEMENT_TYPES, element_type
from te_select.runtime.call.cuda.device_array import DeviceArray
from te_select.runtime.call.cuda.driver import CudaError, Memory
from te_select.runtime.call.cuda.kernel import CudaKernel
from te_select.verify.reference import Array

_ALIGNMENT = 256  # bytes; the alignment of cuMemAlloc
_LARGEST_ALIGNMENT = 8  # bytes; the alignment that a kernel expects of its widest elements
_failures: list[str] = []  # how kernels failed while they ran


class OnDevice:
    """A CUDA kernel that takes NumPy arrays, and runs on device 0.

    Parameters
    ----------
    kernel
        The kernel.
    """

    # Memory of the device ends elsewhere than the arrays.
    copies = True

    def __init__(self, kernel: CudaKernel) -> None:
        self._kernel = kernel
        self.workload = kernel.workload
        self.path = kernel.path

    def __call__(self, cond: Any, then: Any, else_: Any, *, out: Array) -> Array:
        """Copy the operands to the device, select, and copy back the memory that holds ``out``.

        Parameters
        ----------
        cond, then, else_
            NumPy arrays of any layout, or scalars.
        out
            A compact array. Its address on the device is the same as here modulo 256 bytes. So are
            those of the inputs, unless their elements must be aligned.

        Returns
        -------
        array
            ``out``.

        Raises
        ------
        ArtifactError
            If there is no device, or not enough memory on it.
        SelectError
            Any other error of the kernel. If it fails while it runs, for example at an address, the
            device serves this process no more, and every later call raises the same.
        """
        if _failures:
            raise SelectError(_failures[0])
        try:
            whole = _whole(out)
            shift = whole.ctypes.data % _ALIGNMENT
            memory = Memory(whole.nbytes + shift)
            image = DeviceArray(memory, ELEMENT_TYPES["uint8"], whole.shape, shift)
            image.write(whole)
            place = shift + out.ctypes.data - whole.ctypes.data
            on_out = DeviceArray(memory, element_type(out.dtype), out.shape, place)
            on_cond, on_then, on_else = (
                on_out if each is out else self._placed(each) for each in (cond, then, else_)
            )
            self._kernel(on_cond, on_then, on_else, out=on_out)
        except CudaError as error:
            raise ArtifactError(f"the kernel cannot be run here: {error}") from error
        try:
            image.read(whole)
        except CudaError as error:
            _failures.append(f"{self.workload.name} failed on the device: {error}")
            raise SelectError(_failures[0]) from error
        return out

    def _placed(self, value: Any) -> Any:
        """An array on the device; a scalar as it is, and an array of rank 0 at an odd address.

        The kernel takes these by value. So both ways are checked if the address changes.
        """
        if not isinstance(value, np.ndarray) or (not value.ndim and value.ctypes.data % 2):
            return value
        array = np.asarray(value, order="C")
        element = element_type(array.dtype)
        aligned = min(element.width, _LARGEST_ALIGNMENT)
        shift = array.ctypes.data % _ALIGNMENT // aligned * aligned
        made = DeviceArray(Memory(array.nbytes + shift), element, array.shape, shift)
        made.write(array)
        return made


def on_device(array: Array) -> DeviceArray:
    """A copy of a compact array on device 0.

    Raises
    ------
    CudaError
        If there is no device, or not enough memory.
    """
    made = DeviceArray.empty(element_type(array.dtype), array.shape)
    made.write(array)
    return made


def _whole(array: Array) -> Array:
    """All bytes of the memory of which an array is a view."""
    base = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return np.asarray(base.reshape(-1).view(np.uint8))
