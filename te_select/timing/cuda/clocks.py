"""Timing of work on a CUDA device: events around many calls, contestants in turns.

Small work is captured in CUDA graphs, so that it is timed without the cost of a launch.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tvm_ffi

from te_select.runtime.call.cuda import driver
from te_select.timing.rounds import Timing, repeats_for, sample_in_turns

SHORTEST_SAMPLE = 2e-3  # seconds; the first launch and the events cost only microseconds
DEFAULT_STREAM = 0
WARM_UP_CALLS = 3
_MOST_REPEATS = 10_000
_MOST_NODES = 1000  # calls in a graph; for longer samples the graph is launched again
_NON_BLOCKING, _RELAXED = 1, 2  # CU_STREAM_NON_BLOCKING, CU_STREAM_CAPTURE_MODE_RELAXED


def take_turns(samplers: Mapping[str, Repeated], rounds: int) -> dict[str, Timing]:
    """Time contestants in turns, so that drift of the device's clocks affects all of them alike."""
    return sample_in_turns({name: each.sample for name, each in samplers.items()}, rounds)


class Repeated:
    """A contestant whose sample is the mean of as many calls as make it long enough.

    Parameters
    ----------
    seconds
        Seconds per call of a number of calls.
    """

    def __init__(self, seconds: Callable[[int], float]) -> None:
        self._seconds = seconds
        self.repeats = repeats_for(seconds, SHORTEST_SAMPLE, _MOST_REPEATS)

    def sample(self) -> float:
        """Seconds per call."""
        return self._seconds(self.repeats)


def queue(call: Callable[[], Any]) -> Repeated:
    """Time calls that enqueue work on the default stream, between two events.

    For small work this times the cost of a launch.
    """

    def work(count: int) -> None:
        for _ in range(count):
            call()

    return Repeated(lambda repeats: between_events(work, WARM_UP_CALLS, repeats, DEFAULT_STREAM))


def between_events(work: Callable[[int], object], warm_up: int, repeats: int, stream: int) -> float:
    """Seconds per repeat of work on device 0, from one event to another.

    Parameters
    ----------
    work
        Enqueues the given number of repeats.
    warm_up
        Repeats before the first event. They keep the device busy while the timed repeats are
        enqueued, so nothing waits for them.
    repeats
        Repeats between the events.
    stream
        The stream of the work.

    Returns
    -------
    float
        Seconds.
    """
    begin, end = _events()
    on_stream = ctypes.c_void_p(stream)
    driver.synchronize(0)
    work(warm_up)
    with driver.on_device(0):
        driver.call("cuEventRecord", begin, on_stream)
    work(repeats)
    milliseconds = ctypes.c_float()
    with driver.on_device(0):
        driver.call("cuEventRecord", end, on_stream)
        driver.call("cuEventSynchronize", end)
        driver.call("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
    return milliseconds.value * 1e-3 / repeats


@functools.cache
def _events() -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """Two events of device 0, made once."""
    made = ctypes.c_void_p(), ctypes.c_void_p()
    with driver.on_device(0):
        for event in made:
            driver.call("cuEventCreate", ctypes.byref(event), 0)
    return made


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
    nodes = ctypes.c_size_t()
    executable = ctypes.c_void_p()
    with driver.on_device(0):
        try:
            driver.call("cuGraphGetNodes", graph, None, ctypes.byref(nodes))
            if nodes.value < count:  # work on another stream is not captured but runs at once
                raise driver.CudaError(f"{nodes.value} of {count} calls were captured")
            driver.call(
                "cuGraphInstantiateWithFlags",
                ctypes.byref(executable),
                graph,
                ctypes.c_uint64(0),
            )
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
        if torch and torch.cuda.is_available():
            stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(stream)))
        yield
