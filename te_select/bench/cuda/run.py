"""Runs a suite on CUDA device 0: every contestant verified, then timed in turns beside a copy."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tvm_ffi

import te_select
from te_select.bench.contest import (
    POISON,
    ROUNDS,
    Contest,
    Result,
    decided,
    difference,
    rows,
)
from te_select.bench.cuda.operands import DeviceSet, make_sets, poison, result, torch_tensors
from te_select.bench.options import Options
from te_select.bench.peers.base import Call, load
from te_select.bench.row import COPY, Row
from te_select.bench.suite import Entry
from te_select.errors import TargetError
from te_select.operator.access import access_pattern
from te_select.runtime.call.cuda import driver
from te_select.timing.cuda.clocks import Repeated, clock, queue, take_turns
from te_select.timing.cuda.graphs import Graph, replayed
from te_select.timing.cuda.roof import probe, rate, sets_for
from te_select.timing.operands import Mask, make_operands
from te_select.verify.reference import Array


def run(entries: Sequence[Entry], masks: Sequence[Mask], options: Options) -> Iterator[Row]:
    """Measure every workload under every mask.

    Parameters
    ----------
    entries
        The workloads.
    masks
        How cond is drawn.
    options
        How to measure. Calls always go through sets of operands larger than twice the second-level
        cache, if 32 sets are enough for that. ``cold`` makes no difference.

    Yields
    ------
    Row
        As soon as it is measured.

    Raises
    ------
    TargetError
        If there is no CUDA device.
    """
    try:
        l2 = driver.devices()[0].l2
    except driver.CudaError as error:
        raise TargetError(
            f"target {options.target!r} cannot be measured here: {error}; run this on a machine "
            "with an NVIDIA GPU"
        ) from error
    yield from rows(entries, masks, lambda entry, mask: _measure(entry, mask, options, l2))


def _check(call: Call, operands: DeviceSet, result_of: Result[DeviceSet]) -> str:
    poison(operands, POISON)
    value = call()
    driver.synchronize(0)
    return difference(result_of(value, operands), operands.host)


def _sampler_of(peer: Any) -> Callable[[Call], Repeated]:
    """How a peer's calls are timed."""
    wait = getattr(peer, "wait", None)
    if wait is not None:
        return functools.partial(clock, wait=wait)
    return replayed if getattr(peer, "graphs", False) else queue


def _measure(entry: Entry, mask: Mask, options: Options, l2: int) -> Row:
    workload = entry.workload
    moved = access_pattern(workload).bytes_moved()
    count = sets_for(moved, l2)
    cold = count * moved > 2 * l2
    cache = "cold" if cold else f"of {count} sets in turns, less than twice the L2"
    contest: Contest[DeviceSet, Repeated] = Contest(
        make_sets(make_operands(workload, mask), count), _check, replayed
    )
    kernel = contest.add_kernels(workload, options, _calls, _own_output)
    contest.add_peers(workload, options.peers, _sampler_of)
    contestants = contest.contestants | {COPY: probe(moved, count)}
    rounds = options.rounds or ROUNDS
    timings = take_turns(contestants, rounds)
    queued = (name for name, each in contest.contestants.items() if not isinstance(each, Graph))
    row = contest.row(
        entry,
        mask,
        kernel,
        cache=cache,
        rounds=rounds,
        timings=timings,
        roofs={COPY: rate(moved, timings[COPY])},
        how={COPY: "cuMemcpyDtoDAsync"},
        queued=tuple(queued),
    )
    return decided(row, contestants, take_turns)


def _calls(kernel: te_select.Kernel, sets: Sequence[DeviceSet]) -> list[Call]:
    """Our own calls, with torch tensors if torch is installed, as its users pass them."""
    with_torch = _torch_sees_a_device()

    def bind(operands: DeviceSet) -> Call:
        arrays = operands.arrays()
        if with_torch:
            tensors = [
                tensor.reshape(array.shape)
                for tensor, array in zip(torch_tensors(operands), arrays, strict=True)
            ]
        else:
            tensors = [tvm_ffi.from_dlpack(array) for array in arrays]
        cond, then, else_, out = tensors
        return lambda: kernel(cond, then, else_, out=out)

    return [bind(operands) for operands in sets]


def _torch_sees_a_device() -> bool:
    try:
        return bool(load("torch").cuda.is_available())
    except ImportError:
        return False


def _own_output(_value: Any, operands: DeviceSet) -> Array:
    return result(operands)
