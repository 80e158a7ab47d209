"""Where a config comes from, as a kernel and its manifest say it."""

from __future__ import annotations

from te_select.access import AccessPattern, access_pattern
from te_select.workload import Workload

DEFAULT = "default"
TUNED, NEAREST = "tuned:", "nearest:"


def ratio(pattern: AccessPattern, other: AccessPattern) -> float | None:
    """How many times as many elements one pattern has as another, loop by loop, at least 1.

    The factors of the loops are multiplied, whichever way each of them goes. A loop of the first
    pattern whose extent is named is near to every extent.

    Returns
    -------
    float or None
        None where width or movers differ, or a loop is empty.
    """
    same = [loop.movers for loop in pattern.loops] == [loop.movers for loop in other.loops]
    if not same or pattern.width != other.width:
        return None
    factor = 1.0
    for mine, its in zip(pattern.loops, other.loops, strict=True):
        if mine.extent is None:
            continue
        if not mine.extent or not its.extent:
            return None
        factor *= max(mine.extent / its.extent, its.extent / mine.extent)
    return factor


def explain(origin: str, workload: Workload) -> str:
    """Say in one line why a kernel has the config it has.

    Parameters
    ----------
    origin
        Of the kernel.
    workload
        Of the kernel.

    Returns
    -------
    str
        The line.
    """
    kind, _, record = origin.partition(":")
    target, _, key = record.rpartition("/")
    if origin == DEFAULT or not key:
        return "no record was near enough, or none was to be used: the schedule's default"
    if kind == TUNED.rstrip(":"):
        return f"this access pattern was tuned for {target}"
    pattern = access_pattern(workload)
    sizes = "sizes known at call time" if workload.dim_names else f"{pattern.elements:,} elements"
    try:
        factor = ratio(pattern, AccessPattern.from_key(key))
    except ValueError:
        factor = None
    distance = "" if factor is None else f", {factor:.3g} times apart in size"
    return f"tuned for {target} with the same loops and element width{distance} ({sizes})"
