"""CUDA graphs of a contestant's calls, so that small work is timed without the cost of a launch."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tvm_ffi

from te_select.runtime.call.cuda import driver
from te_select.timing.cuda.clocks import Repeated, between_events, queue

_MOST_NODES = 1000  # calls in a graph; for longer samples the graph is launched again
_NON_BLOCKING, _RELAXED = 1, 2  # CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED


class Graph(Repeated):
    """Calls that were captured in a CUDA graph, timed by replaying it.

    Parameters
    ----------
    call
        Enqueues the work on the current stream of torch and of tvm-ffi.
    calls
        How many to capture.

    Raises
    ------
    CudaError
        If the work cannot be captured.
    """

    def __init__(self, call: Callable[[], Any], calls: int) -> None:
        self._calls = calls
        self._graph = graph = _instantiated(call, calls)

        def launch(count: int) -> None:
            with driver.on_device(0):
                for _ in range(count):
                    driver.call("cuGraphLaunch", graph, ctypes.c_void_p(_stream()))

        super().__init__(lambda launches: between_events(launch, 1, launches, _stream()))

    def sample(self) -> float:
        """Seconds per call."""
        return super().sample() / self._calls

    def __del__(self) -> None:
        """Free it; the driver may be gone when the interpreter ends."""
        if hasattr(self, "_graph"):
            with contextlib.suppress(Exception), driver.on_device(0):
                driver.call("cuGraphExecDestroy", self._graph)


def replayed(call: Callable[[], Any]) -> Repeated:
    """Time calls from a graph, or from a queue if they cannot be captured."""
    queued = queue(call)
    try:
        return Graph(call, min(queued.repeats, _MOST_NODES))
    except Exception:  # of the driver, or of the contestant's library while it is captured
        driver.synchronize(0)
        return queued


def _instantiated(call: Callable[[], Any], count: int) -> ctypes.c_void_p:
    """A graph of so many calls, ready to be launched."""
    driver.synchronize(0)
    graph = ctypes.c_void_p()
    stream = ctypes.c_void_p(_stream())
    with _current(_stream()):
        with driver.on_device(0):
            driver.call("cuStreamBeginCapture_v2", stream, _RELAXED)
        try:
            for _ in range(count):
                call()
        finally:
            with driver.on_device(0):
                driver.call("cuStreamEndCapture", stream, ctypes.byref(graph))
    nodes, executable = ctypes.c_size_t(), ctypes.c_void_p()
    with driver.on_device(0):
        try:
            driver.call("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
            if nodes.value < count:  # work on another stream is not captured but runs at once
                raise driver.CudaError(f"{nodes.value} of {count} calls were captured")
            instantiate = "cuGraphInstantiateWithFlags"
            flags = ctypes.c_uint64(0)
            driver.call(instantiate, ctypes.byref(executable), graph, flags)
        finally:
            driver.call("cuGraphDestroy", graph)
    return executable


@functools.cache
def _stream() -> int:
    """A stream of device 0, made once; the default stream cannot be captured."""
    stream = ctypes.c_void_p()
    with driver.on_device(0):
        driver.call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
    return stream.value or 0


@contextlib.contextmanager
def _current(stream: int) -> Iterator[None]:
    """Make a stream the current one of tvm-ffi, and of torch if it is imported."""
    torch = sys.modules.get("torch")
    with contextlib.ExitStack() as stack:
        stack.enter_context(tvm_ffi.use_raw_stream(tvm_ffi.device("cuda", 0), stream))
        if torch is not None and torch.cuda.is_available():
            stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream)))
        yield
