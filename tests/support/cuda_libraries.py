"""Stand-ins for CuPy and JAX, on the stand-in for the driver: only what a call needs."""

from sys import modules
from threading import Lock
from types import SimpleNamespace

import numpy as np

from te_select.operator.dtypes import element_type, numpy_dtype
from tests.support import cuda_standin
from tests.support.hand_made import CUDA, HandMade

STREAM = 0x7000


class Array:
    """A tensor on device 0 that remembers the streams for which it was passed on."""

    is_old = False

    def __init__(self, values, step=1):
        values = np.asarray(values)
        self.dtype = values.dtype
        self.shape = values.shape
        self.streams = []
        spread = np.zeros((*values.shape[:-1], values.shape[-1] * step), values.dtype)
        spread[..., ::step] = values
        self._memory = cuda_standin.on_device(spread)
        rows = spread.shape[-1]
        self._strides = (rows, step) if step > 1 else None

    @classmethod
    def empty(cls, shape, dtype, **_where):
        return cls(np.zeros(shape, dtype))

    @property
    def values(self):
        whole = self._memory.numpy(numpy_dtype(element_type(self.dtype).name))
        return whole if self._strides is None else whole[..., :: self._strides[-1]]

    def __dlpack_device__(self):
        return self._memory.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **version):
        if version and self.is_old:
            raise TypeError("of a library before DLPack 1.0")
        self.streams.append(stream)
        if self._strides is None:
            return self._memory.__dlpack__()
        of_type = np.empty(self.shape, self.dtype)
        at = self._memory.memory.address
        return HandMade(of_type, data=at, strides=self._strides, device=CUDA).__dlpack__()


class CupyArray(Array):
    device = Lock()  # held while the device is the current one

    def __setitem__(self, _everything, other):
        whole = self._memory.numpy(self.dtype)
        step = 1 if self._strides is None else self._strides[-1]
        whole[..., ::step] = other.values
        self._memory.write(whole)


CupyArray.__module__ = "cupy"


class JaxArray(Array):
    waited = 0

    def block_until_ready(self):
        self.waited += 1
        return self

    def devices(self):
        return {"device 0"}


def install(monkeypatch, stream=STREAM):
    """Replace CuPy and JAX by the stand-ins; CuPy's current stream is ``stream``."""

    def there(value):
        assert CupyArray.device.locked()
        return value

    cupy = SimpleNamespace(
        ndarray=CupyArray,
        empty=lambda *args: there(CupyArray.empty(*args)),
        ascontiguousarray=lambda array: CupyArray(array.values),
        cuda=SimpleNamespace(get_current_stream=lambda: there(SimpleNamespace(ptr=stream))),
    )
    jax = SimpleNamespace(
        Array=JaxArray,
        numpy=SimpleNamespace(empty=JaxArray.empty),
        dtypes=SimpleNamespace(canonicalize_dtype=lambda dtype: dtype),
    )
    monkeypatch.setitem(modules, "cupy", cupy)
    monkeypatch.setitem(modules, "jax", jax)
