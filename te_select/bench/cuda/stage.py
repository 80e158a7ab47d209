"""CUDA device 0 as the place where contestants meet."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm_ffi

from te_select.bench.cuda.device_sets import DeviceSet, make_sets, poison, result, torch_tensors
from te_select.bench.cuda.peers import Torch
from te_select.bench.peers.base import Call, Peer
from te_select.bench.stage import POISON, ROUNDS, Result, Stage, difference
from te_select.errors import TargetError
from te_select.runtime.call.cuda import driver
from te_select.runtime.call.kernel import Kernel
from te_select.timing.cuda import clocks, roof
from te_select.timing.inputs import Operands
from te_select.timing.roof import Probe
from te_select.timing.rounds import Timing
from te_select.verify.reference import Array


class CudaStage(Stage):
    """CUDA device 0. Calls go through sets of operands larger than twice its L2, cold or not.

    Parameters
    ----------
    target
        The name of the target, for a message.

    Raises
    ------
    TargetError
        If there is no CUDA device.
    """

    def __init__(self, target: str) -> None:
        super().__init__(target)
        try:
            self._l2 = driver.devices()[0].l2
        except driver.CudaError as error:
            raise TargetError(
                f"target {target!r} cannot be measured here: {error}; run this on a machine "
                "with an NVIDIA GPU"
            ) from error

    def count(self, moved: int, cold: bool) -> tuple[int, str]:
        """As many sets as displace each other from the L2, if 32 are enough."""
        count = roof.sets_for(moved, self._l2)
        cold = count * moved > 2 * self._l2
        return count, "cold" if cold else f"of {count} sets in turns, less than twice the L2"

    def sets(self, made: Callable[[int], Operands], count: int) -> list[DeviceSet]:
        """Copies of one set."""
        return make_sets(made(0), count)

    def calls(self, kernel: Kernel, sets: Sequence[DeviceSet]) -> list[Call]:
        """With torch tensors if torch sees a device, as its users pass them."""
        with_torch = Torch().available() is None

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

    def own_output(self, _value: Any, operands: DeviceSet) -> Array:
        """What the call left on the device."""
        return result(operands)

    def check(self, call: Call, operands: DeviceSet, result: Result) -> str:
        """Compare on the CPU."""
        poison(operands, POISON)
        value = call()
        driver.synchronize(0)
        return difference(result(value, operands), operands.host)

    def contestant(self, call: Call, peer: Peer | None) -> Any:
        """Replays of a graph, or the queue for a peer that no graph captures."""
        by_graph = peer is None or getattr(peer, "graphs", False)
        return clocks.replayed(call) if by_graph else clocks.queue(call)

    def roofs(self, moved: int, count: int) -> dict[str, Probe]:
        """A copy in the device's memory."""
        copy: Any = roof.probe(moved, count)
        return {"copy": Probe(copy, 1, 2 * roof.copied(moved), "cuMemcpyDtoDAsync", copy.sample())}

    def rounds(self, _contestants: Mapping[str, Any]) -> int:
        """Rows are short on a device."""
        return ROUNDS

    def take_turns(self, contestants: Mapping[str, Any], rounds: int) -> Mapping[str, Timing]:
        """By events of the device."""
        return clocks.take_turns(contestants, rounds)

    def queued(self, contestants: Mapping[str, Any]) -> tuple[str, ...]:
        """All that no graph replays."""
        return tuple(
            name for name, each in contestants.items() if not isinstance(each, clocks.Graph)
        )
