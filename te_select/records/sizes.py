"""The sizes at which a workload with named dims is tuned. Its record is found by the same sizes."""

from __future__ import annotations

from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload

REPRESENTATIVE_BYTES = 64 << 20  # too much for caches: bytes decide the time, some 2 ms a call
_SMALLEST, _LARGEST = 2, 1 << 26


def representative(workload: Workload) -> Workload:
    """Give all named dims the same size, with which about 64 MB are moved.

    Parameters
    ----------
    workload
        The workload; one of int dims is returned as it is.

    Returns
    -------
    Workload
        The workload with int dims. The size is a power of two, at least 2, because with 1 a loop
        would vanish. If out has an extent of 0, the size is 2.
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
