"""The sizes at which a workload with named dims is tuned, and by which its record is found."""

from __future__ import annotations

from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload

REPRESENTATIVE_BYTES = 64 << 20  # beyond caches, where time is bytes; a call takes some 2 ms
_SMALLEST, _LARGEST = 2, 1 << 26


def representative(workload: Workload) -> Workload:
    """Give every named dim one and the same size, with which about 64 MB are moved.

    Parameters
    ----------
    workload
        The workload; one of int dims is returned as it is.

    Returns
    -------
    Workload
        The workload with int dims. The size is a power of two, at least 2: with 1 a loop would go.
        Where out has an extent of 0, it is 2.
    """
    if not workload.dim_names:
        return workload
    pattern = access_pattern(workload)
    size = _SMALLEST if 0 in workload.out_shape else _LARGEST
    while size > _SMALLEST and pattern.bytes_moved(dict.fromkeys(workload.dim_names, size)) > (
        REPRESENTATIVE_BYTES
    ):
        size //= 2
    return workload.bind(dict.fromkeys(workload.dim_names, size))
