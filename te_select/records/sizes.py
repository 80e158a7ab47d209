"""The sizes at which a workload with named dims is tuned. Its record is found by the same sizes."""

from te_select.errors import ArgumentError
from te_select.operator.access import access_pattern
from te_select.operator.workload import Workload

REPRESENTATIVE_BYTES = 64 << 20  # too much for caches: bytes decide the time, some 2 ms a call
SMALLEST = 2  # with a size of 1 a loop would vanish
_LARGEST = 1 << 26
# Named dims with the least and the largest size of each.
Ranges = tuple[tuple[str, int, int], ...]


def points(workload: Workload, ranges: Ranges = ()) -> list[Workload]:
    """The workload with int dims, at each of the sizes at which it is tuned.

    Parameters
    ----------
    workload
        The workload.
    ranges
        The sizes of its named dims; empty for the representative one.

    Returns
    -------
    list of Workload
        At the smallest sizes, the geometric middle of the ranges, and the largest, the same once.
        No size is below `SMALLEST`.

    Raises
    ------
    ArgumentError
        If some of its names have no range, or a range is none of it.
    """
    if not ranges:
        return [representative(workload)]
    for name, least, most in ranges:
        if name not in workload.dim_names or not 1 <= least <= most:
            raise ArgumentError(
                f"sizes has {name}={least}:{most}; expected a least and a largest size of one of "
                f"the dims {', '.join(workload.dim_names) or '(none)'}"
            )
    if missing := set(workload.dim_names) - {name for name, _, _ in ranges}:
        raise ArgumentError(
            f"only some dims of {workload} have a size; expected sizes of "
            f"{', '.join(sorted(missing))} as well, or of none"
        )
    bounds = {name: (max(least, SMALLEST), max(most, SMALLEST)) for name, least, most in ranges}
    sizes = (
        {name: round(least ** (1 - part) * most**part) for name, (least, most) in bounds.items()}
        for part in (0.0, 0.5, 1.0)
    )
    return list(dict.fromkeys(workload.bind(each) for each in sizes))


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
    size = SMALLEST if 0 in workload.out_shape else _LARGEST
    while size > SMALLEST and pattern.bytes_moved(dict.fromkeys(workload.dim_names, size)) > (
        REPRESENTATIVE_BYTES
    ):
        size //= 2
    return workload.bind(dict.fromkeys(workload.dim_names, size))
