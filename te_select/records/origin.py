"""Where a config comes from, in the words of a kernel and its manifest."""

from te_select.operator.access import AccessPattern, access_pattern
from te_select.operator.workload import Workload
from te_select.records.log import Record

DEFAULT = "default"
BY_HAND = "by hand"
TUNED, NEAREST = "tuned:", "nearest:"
OF_SCHEDULE = "the schedule's default config"
NOT_ASKED = f"records were not to be used: {OF_SCHEDULE}"
NONE_NEAR = f"not tuned for such shapes: {OF_SCHEDULE}"


def ratio(pattern: AccessPattern, other: AccessPattern) -> float | None:
    """How far two patterns lie apart in size: a factor of at least 1.

    Every loop gives the larger extent over the smaller one, and these factors are multiplied. A
    named extent in the first pattern counts as a factor of 1.

    Returns
    -------
    float or None
        None if width or movers differ, or a loop is empty.
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


def outcome(record: Record) -> str:
    """Say in a few words what a session found, and what a user has accepted."""
    told = [f"{name} {said}" for name in ("cond", "sizes") if (said := getattr(record, name))]
    if held := record.session.get("fixed"):
        told.append(f"with {held} held")
    if record.accepted:
        told.append(f"unsure, and accepted: {record.accepted}")
    under = f" ({'; '.join(told)})" if told else ""
    if record.default_won:  # times of two configs never agree to the last bit
        return f"the default was the best of {record.trials} configs{under}"
    return (
        f"{record.gain:.2f}x the speed of the default, the best of {record.trials} configs{under}"
    )


def explain(place: str, workload: Workload, factor: float | None, found: str) -> str:
    """Say in one line why a kernel has the config of a record.

    Parameters
    ----------
    place
        The target of the record, as its folder is called.
    workload
        The kernel's workload.
    factor
        How far the record's pattern lies apart in size; None if it is the workload's own record.
    found
        The `outcome` of the record's session.

    Returns
    -------
    str
        The line.
    """
    if factor is None:
        return f"this access pattern was tuned for {place}: {found}"
    apart = " (sizes known at call time)"
    if not workload.dim_names:
        elements = access_pattern(workload).elements
        apart = f", {factor:.3g} times apart in size ({elements:,} elements)"
    return f"tuned for {place} with the same loops and element width{apart}: {found}"
