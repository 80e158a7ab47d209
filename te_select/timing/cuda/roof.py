"""The roof of a CUDA device: the bandwidth of a copy in its memory, beyond the L2 cache."""

import ctypes
import itertools

import tvm_ffi

from te_select.runtime.call.cuda import driver
from te_select.timing.cuda.clocks import Repeated, queue, replayed, take_turns

SETS = (2, 32)  # fewest and most sets; making more takes longer than measuring
_ROUNDS = 7


def sets_for(moved: int, l2: int) -> int:
    """How many sets of operands to use in turns, so that no call finds its operands in the L2.

    Parameters
    ----------
    moved
        Bytes that a call reads and writes.
    l2
        Bytes of the second-level cache.

    Returns
    -------
    int
        The number of sets that together are more than twice the cache, but at most 32.
    """
    fewest, most = SETS
    return min(2 * l2 // max(moved, 1) + fewest, most)


def copied(moved: int) -> int:
    """Bytes that the probe copies; its reads and writes add up to those of the workload."""
    return max(1, moved // 2)


def probe(moved: int, count: int) -> Repeated:
    """A device-to-device copy that goes through as many sets of memory as the workload.

    It is the faster of copies in a queue and copies in a graph, because a device may run the two in
    different ways.
    """
    size = copied(moved)
    pairs = [[driver.Memory(size) for _ in range(2)] for _ in range(count)]
    turns = itertools.cycle(pairs)
    device = tvm_ffi.device("cuda", 0)

    def copy() -> None:
        source, target = next(turns)
        with driver.on_device(0):
            driver.call(
                "cuMemcpyDtoDAsync_v2",
                ctypes.c_uint64(target.address),
                ctypes.c_uint64(source.address),
                ctypes.c_size_t(size),
                ctypes.c_void_p(tvm_ffi.get_raw_stream(device)),
            )

    return min(queue(copy), replayed(copy), key=lambda sampler: sampler.sample())


def bandwidth(moved: int) -> float | None:
    """Measure the roof of device 0.

    Parameters
    ----------
    moved
        Bytes that the workload reads and writes.

    Returns
    -------
    float or None
        Bytes per second; None if there is no device, or no memory for it.
    """
    try:
        count = sets_for(moved, driver.devices()[0].l2)
        timing = take_turns({"copy": probe(moved, count)}, _ROUNDS)["copy"]
        return 2 * copied(moved) / timing.median
    except driver.CudaError:
        return None
