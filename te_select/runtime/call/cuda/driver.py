"""The NVIDIA driver, called from Python: lists devices, and allocates and copies memory.

Kernels are launched by the compiled host half. This module serves targets, reports and checks. It
needs nothing except the driver itself.
"""

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from te_select.errors import caught, suppress

_LIBRARY = "libcuda.so.1"
_NAME_BYTES = 256
_CAPABILITY_MAJOR, _CAPABILITY_MINOR, _L2_BYTES = 75, 76, 38  # CUdevice_attribute


class CudaError(Exception):
    """There is no driver or no device, or the driver refuses; the message says which."""


@dataclass(frozen=True)
class Device:
    """A CUDA device.

    Parameters
    ----------
    index
        Its number in DLPack and in the driver.
    name
        Such as ``"NVIDIA H200"``.
    arch
        Such as ``"sm_90"``.
    memory
        Bytes of memory.
    l2
        Bytes of the second-level cache.
    """

    index: int
    name: str
    arch: str
    memory: int
    l2: int


def devices() -> list[Device]:
    """List the CUDA devices that this process may use.

    Returns
    -------
    list of Device
        At least one.

    Raises
    ------
    CudaError
        If there is none, or no driver.
    """
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    if not count.value:
        raise CudaError("the driver shows no CUDA device (is CUDA_VISIBLE_DEVICES empty?)")
    return [_device(index) for index in range(count.value)]


def missing() -> str:
    """Why `devices` finds none; empty if it finds one."""
    try:
        devices()
    except CudaError as error:
        return str(error)
    return ""


def _device(index: int) -> Device:
    handle = ctypes.c_int()
    memory = ctypes.c_size_t()
    name = ctypes.create_string_buffer(_NAME_BYTES)
    call("cuDeviceGet", ctypes.byref(handle), index)
    call("cuDeviceGetName", name, _NAME_BYTES, handle)
    call("cuDeviceTotalMem_v2", ctypes.byref(memory), handle)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        call("cuDeviceGetAttribute", ctypes.byref(value), number, handle)
        return value.value

    arch = f"sm_{attribute(_CAPABILITY_MAJOR)}{attribute(_CAPABILITY_MINOR)}"
    return Device(index, name.value.decode(), arch, memory.value, attribute(_L2_BYTES))


def call(function: str, *arguments: Any) -> None:
    """Call a function of the driver.

    Raises
    ------
    CudaError
        If there is no driver, or it does not succeed.
    """
    driver = _driver()
    if code := getattr(driver, function)(*arguments):
        raise CudaError(f"{function} failed: {_described(driver, code)}")


_open = functools.cache(ctypes.CDLL)


def _driver() -> ctypes.CDLL:
    """The driver, started; after a failure, the next call tries again."""
    try:
        driver = _open(_LIBRARY)
    except caught(OSError) as error:
        raise CudaError(f"there is no NVIDIA driver ({error})") from error
    if code := driver.cuInit(0):
        raise CudaError(f"the NVIDIA driver does not start: {_described(driver, code)}")
    return driver


def _described(driver: ctypes.CDLL, code: int) -> str:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    driver.cuGetErrorName(code, ctypes.byref(name))
    driver.cuGetErrorString(code, ctypes.byref(text))
    return f"{(name.value or b'error').decode()} ({code}): {(text.value or b'unknown').decode()}"


@functools.cache
def _primary_context(device: int) -> ctypes.c_void_p:
    """The context that all libraries share; retained until the process ends."""
    handle = ctypes.c_int()
    context = ctypes.c_void_p()
    call("cuDeviceGet", ctypes.byref(handle), device)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
    return context


@contextlib.contextmanager
def on_device(device: int) -> Iterator[None]:
    """Make a device's primary context the current one of this thread."""
    call("cuCtxPushCurrent_v2", _primary_context(device))
    try:
        yield
    finally:
        call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def synchronize(device: int, stream: int | None = None) -> None:
    """Wait for a stream of a device, or for all of its work."""
    with on_device(device):
        if stream is None:
            call("cuCtxSynchronize")
        else:
            call("cuStreamSynchronize", ctypes.c_void_p(stream))


class Memory:
    """Memory of a CUDA device, freed with the object.

    Parameters
    ----------
    size
        Bytes.
    device
        The device's number.

    Raises
    ------
    CudaError
        If there is not so much memory, or no device.
    """

    def __init__(self, size: int, device: int = 0) -> None:
        self.address = 0
        self.size = size
        self.device = device
        address = ctypes.c_uint64()
        with on_device(device):
            call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.address = address.value

    def write(self, source: int, size: int, offset: int = 0) -> None:
        """Copy ``size`` bytes from an address of the CPU, and wait."""
        to = ctypes.c_uint64(self.address + offset)
        with on_device(self.device):
            call("cuMemcpyHtoD_v2", to, ctypes.c_void_p(source), ctypes.c_size_t(size))

    def read(self, target: int, size: int, offset: int = 0) -> None:
        """Copy ``size`` bytes to an address of the CPU, after all work of the default stream."""
        source = ctypes.c_uint64(self.address + offset)
        with on_device(self.device):
            call("cuMemcpyDtoH_v2", ctypes.c_void_p(target), source, ctypes.c_size_t(size))

    def __del__(self) -> None:
        """Free it; the driver may be gone when the interpreter ends."""
        if self.address:
            with suppress(Exception), on_device(self.device):
                call("cuMemFree_v2", ctypes.c_uint64(self.address))
