"""Workloads that TVM cannot compile: explains the failure in words of the workload."""

import contextlib
from collections.abc import Iterator

from te_select.errors import ArgumentError, caught
from te_select.operator.workload import Workload

_INT32_LITERAL = "exceeds range of int32"  # in TVM 0.27's error when it fuses such loops


@contextlib.contextmanager
def tvm_errors_as_ours(*workloads: Workload) -> Iterator[None]:
    """Explain TVM's failure when axes are too large to be one loop.

    TVM fails wherever it makes one index from several loops: in a schedule's ``fuse``, in a
    simplification of its result, or in a pass of the lowering.

    Parameters
    ----------
    workloads
        The workloads that are scheduled, lowered or built. If there are several, one of them is the
        cause.

    Raises
    ------
    ArgumentError
        Instead of TVM's own error.
    """
    try:
        yield
    except caught(ValueError) as error:
        if _INT32_LITERAL not in str(error):
            raise
        which = str(workloads[0]) if len(workloads) == 1 else f"one of {len(workloads)} workloads"
        raise ArgumentError(
            f"{which} cannot be compiled: TVM makes one loop of axes only where those behind the "
            "first have fewer than 2^31 elements together; merge axes by reshaping"
        ) from error
