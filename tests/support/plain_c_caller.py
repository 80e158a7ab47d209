"""Calls a library as plain C would: by dlopen, with tensors in ctypes, and without tvm-ffi.

Run as a module: ``plain_c_caller NAME LIBRARY...`` calls the function of every library, closes
it while its threads wait, sleeps, and does so again.
"""

import _ctypes
import sys
import threading
import time
from ctypes import CDLL

import numpy as np

from tests.support.hand_made import HandMade, call_function

SHAPE = (64, 64)


def call(select):
    """Select into new memory; whether the result is right."""
    cond = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE) % 3 == 0
    out = np.full(SHAPE, 7, "f4")
    arrays = cond, np.ones(SHAPE, "f4"), np.zeros(SHAPE, "f4"), out
    status = call_function(select, *map(HandMade, arrays))
    return status == 0 and bool((out == cond).all())


def main(name, *paths):
    """Open, call, close; then the same while another thread calls."""
    never_called = CDLL(paths[-1])  # it may not be the one that others rely on
    for path in paths[:-1] or paths:
        library = CDLL(path)
        assert call(library[f"__tvm_ffi_{name}"])
        _ctypes.dlclose(library._handle)
    time.sleep(0.2)  # whoever still spins goes to sleep
    for path in paths[:3]:
        library = CDLL(path)
        select = library[f"__tvm_ffi_{name}"]
        calls = []

        def again(select=select, calls=calls):
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
