"""What TVM cannot compile, said in words of the workload."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from te_select.errors import ArgumentError
from te_select.operator.workload import Workload

_INT32_LITERAL = "exceeds range of int32"  # what TVM 0.27 fails with wherever it fuses such loops


@contextlib.contextmanager
def explained(*workloads: Workload) -> Iterator[None]:
    """Turn TVM's failure over axes that are too large to be one loop into an error that says so.

    It comes from wherever TVM makes one index of several loops: a schedule's ``fuse``, a
    simplification of its result, a pass of the lowering.

    Parameters
    ----------
    workloads
        What is being scheduled, lowered or built; where they are many, one of them is to blame.

    Raises
    ------
    ArgumentError
        In the place of TVM's own.
    """
    try:
        yield
    except ValueError as error:
        if _INT32_LITERAL not in str(error):
            raise
        which = str(workloads[0]) if len(workloads) == 1 else f"one of {len(workloads)} workloads"
        raise ArgumentError(
            f"{which} cannot be compiled: TVM makes one loop of axes only where those behind the "
            "first have fewer than 2^31 elements together; merge axes by reshaping"
        ) from error
