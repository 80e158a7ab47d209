"""Calls a library as plain C would: by dlopen, with tensors in ctypes, and without tvm-ffi.

Run as a program: ``plain_c_caller.py NAME LIBRARY...`` calls the function of every library, closes
it while its threads wait, sleeps, and does so again.
"""

import _ctypes
import ctypes
import sys
import threading
import time
from typing import Any

import numpy as np

from te_select.runtime.call.dlpack import DLTensor

SHAPE = (64, 64)
_BOOL, _FLOAT, _CPU, _DLTENSOR = 6, 2, 1, 7


class Argument(ctypes.Structure):
    """TVMFFIAny."""

    _fields_ = (
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_int32),
        ("value", ctypes.c_void_p),
    )


def call(select: Any) -> bool:
    """Select into new memory; whether the result is right."""
    extents = (ctypes.c_int64 * 2)(*SHAPE)
    cond = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE) % 3 == 0
    arrays = [cond, np.ones(SHAPE, "f4"), np.zeros(SHAPE, "f4"), np.full(SHAPE, 7, "f4")]
    tensors = []
    for array in arrays:
        code = _BOOL if array.dtype == np.bool_ else _FLOAT
        kind = (code, 8 * array.itemsize, 1)
        tensors.append(DLTensor(array.ctypes.data, _CPU, 0, 2, *kind, extents, None, 0))
    given = [Argument(_DLTENSOR, 0, ctypes.addressof(tensor)) for tensor in tensors]
    result = Argument()
    status = select(None, (Argument * 4)(*given), 4, ctypes.byref(result))
    return status == 0 and bool((arrays[3] == cond).all())


def main(name: str, *paths: str) -> None:
    """Open, call, close; then the same while another thread calls."""
    never_called = ctypes.CDLL(paths[-1])  # it may not be the one that others rely on
    for path in paths[:-1] or paths:
        library = ctypes.CDLL(path)
        assert call(library[f"__tvm_ffi_{name}"])
        _ctypes.dlclose(library._handle)
    time.sleep(0.2)  # whoever still spins goes to sleep
    for path in paths[:3]:
        library = ctypes.CDLL(path)
        select = library[f"__tvm_ffi_{name}"]
        calls: list[bool] = []

        def again(select: Any = select, calls: list[bool] = calls) -> None:
            calls.extend(call(select) for _ in range(200))

        threads = [threading.Thread(target=again) for _ in range(2)]
        for thread in threads:
            thread.start()
        _ctypes.dlclose(library._handle)
        for thread in threads:
            thread.join()
        assert len(calls) == 400 and all(calls)
    _ctypes.dlclose(never_called._handle)
    print("every call was right")


if __name__ == "__main__":
    main(*sys.argv[1:])
