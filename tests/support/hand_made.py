"""Tensors of our own, passed on by DLPack as no real library would do it."""

from ctypes import (
    CDLL,
    Structure,
    addressof,
    byref,
    c_char_p,
    c_int32,
    c_int64,
    c_uint32,
    c_void_p,
    py_object,
    pythonapi,
)

from te_select.operator.dtypes import element_type
from te_select.runtime.call.dlpack import DLManagedTensor, DLManagedTensorVersioned

CPU, CUDA = 1, 2
READ_ONLY = 1
BOOL = 6
_CODES = {"b": BOOL, "i": 0, "u": 1, "f": 2, "c": 5}


_new_capsule = pythonapi.PyCapsule_New
_new_capsule.restype = py_object
_new_capsule.argtypes = (c_void_p, c_char_p, c_void_p)
_kept = []  # a taken capsule's memory may be read at any later time


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
        array,
        *,
        shape=None,
        strides=None,
        offset=0,
        data=None,
        device=CPU,
        dtype=None,
        flags=None,
    ):
        extents = array.shape if shape is None else shape
        self.device = device
        self._versioned = flags is not None
        self.managed = (
            DLManagedTensor() if flags is None else DLManagedTensorVersioned(1, 0, flags=flags)
        )
        tensor = self.managed.tensor
        tensor.data = array.ctypes.data - offset if data is None else data
        tensor.device_type = device
        tensor.ndim = len(extents)
        tensor.byte_offset = offset
        tensor.code, tensor.bits, tensor.lanes = dtype or (
            _CODES[array.dtype.kind],
            8 * array.itemsize,
            1,
        )
        tensor.shape = (c_int64 * len(extents))(*extents)
        if strides is not None:
            tensor.strides = (c_int64 * len(strides))(*strides)
        self.tensor = tensor
        _kept.append((array, self.managed))

    def __dlpack_device__(self):
        return (self.device, 0)

    def __dlpack__(self, **options):
        if not self._versioned and options:
            raise TypeError("a producer older than DLPack 1.0 knows no options")
        name = b"dltensor_versioned" if self._versioned else b"dltensor"
        return _new_capsule(addressof(self.managed), name, None)


def handed(array, device=CPU):
    """An array as a tensor of a device, also of a type that NumPy cannot hand over."""
    element = element_type(array.dtype)
    steps = tuple(step // array.itemsize for step in array.strides)
    code = (element.code, element.bits, 1)
    flags = None if array.flags.writeable else READ_ONLY
    return HandMade(array, strides=steps, device=device, dtype=code, flags=flags)


class _Any(Structure):
    """``TVMFFIAny`` that holds a ``DLTensor*``."""

    _fields_ = (("index", c_int32), ("pad", c_uint32), ("value", c_void_p))


def call(kernel, *operands):
    """Call a kernel's exported function as C does, and return its status."""
    name = f"__tvm_ffi_{kernel.workload.name}"
    return call_function(CDLL(str(kernel.path))[name], *operands)


def call_function(function, *operands):
    """The same of a function that ctypes has found."""
    arguments = (_Any * 4)(*(_Any(7, 0, addressof(each.tensor)) for each in operands))
    status = function(None, arguments, 4, byref(_Any()))
    return status
