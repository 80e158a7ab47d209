"""What makes an outcome unsure, what may replace what, and what fits this te_select.

An unsure outcome is reported, but nothing compiles with it, and it replaces no reliable record. The
next session tunes its workload again. A user may accept what is unsure: then kernels take it, but
`logs export --better` leaves it out, and any sure record replaces it.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from te_select.backends import schedule_of
from te_select.errors import TargetError, caught
from te_select.records.log import Record

if TYPE_CHECKING:
    from te_select.backends.targets import ResolvedTarget

# Cores. On two of them, 32 of 33 outcomes beside up to 0.06 were right, and 1 of 6 from 0.2 on.
BUSY = 0.15
ALONE = "no other config ran"
SPREAD = 0.5  # the middle half of the rounds, as a share of their median
BROKEN = 1.5  # speed-up of a trial; what promised more has to be seen again in the finals


def are_busy(cores: float, gain: float = 1.0) -> bool:
    """Whether other programs use so many cores that a time, or a gain, is not this machine's."""
    # Others slow a call by their share, so a gain of twice that is not theirs.
    return cores > max(BUSY, (gain - 1) / 2)


def beside(busy: float, *, accept: bool = False) -> str:
    """Say what it does to outcomes that other programs use so many cores, in one line.

    ``accept`` is that of `reasons`.
    """
    said = f"other programs use {busy:.2f} cores"
    if not are_busy(busy):
        return said
    then = "no kernel uses what is unsure; --accept-unsure keeps what wins"
    if accept:
        then = "what wins is kept, marked unsure"
    return (
        f"{said}: unless they stop, only configs that are {1 + 2 * busy:.2f}x faster than the "
        f"default are sure, and {then}"
    )


def late(tried: int, most: int) -> str:
    """Say that the time was over amid the trials, or amid the finals after them."""
    amid = ", amid the finals" if tried == most else ""
    return f"the time was over after {tried} of {most} trials{amid}"


def reasons(
    busy: float,
    spread: float,
    gain: float = 1.0,
    promised: float = 1.0,
    undecided: str = "",
    *,
    accept: bool = False,
) -> str:
    """Say why an outcome cannot be trusted.

    Parameters
    ----------
    busy
        How many cores other programs used meanwhile, beyond those to spare.
    spread
        How far the rounds of the last comparison lay apart, as `Timing.spread` says.
    gain
        Measured speed-up of the best config over the default; 1 if the default won.
    promised
        The same of the fastest trial.
    undecided
        Why the default has not won, though no config beat it; empty if it has.
    accept
        Whether the best config is recorded all the same.

    Returns
    -------
    str
        The reasons, in one line; empty if there is none.
    """
    found = []
    if are_busy(busy, gain):
        found.append(f"other programs used {busy:.2f} cores meanwhile")
    if spread > SPREAD:
        found.append(f"the rounds lay {spread:.0%} apart")
    if gain == 1 and promised > BROKEN:
        found.append(f"the finals did not repeat the {promised:.2f}x of a trial")
    if gain == 1 and undecided:
        found.append(undecided)
    if found and gain != 1 and not accept:
        found.append(f"a config measured {gain:.2f}x faster is not recorded")
    return "; ".join(found)


def trust(record: Record) -> int:
    """How far a record is trusted: 0 if it is unsure, 1 if a user accepts that, 2 if it is sure."""
    return 0 if record.unsure else 1 if record.accepted else 2


def may_replace(new: Record, old: Record) -> bool:
    """Whether a session's outcome may replace a record: the two were compared, in turns."""
    return trust(new) >= trust(old)


def is_better(new: Record, old: Record) -> bool:
    """Whether a record of elsewhere, which was not compared, may replace another."""
    if trust(new) != trust(old):
        return trust(new) > trust(old)
    if new.tvm != old.tvm:
        return True
    return new.seconds < old.seconds


def unusable(entry: Record) -> str | None:
    """Why nothing uses a record but the next session, or None if it may be used."""
    return f"it is unsure: {entry.unsure}" if entry.unsure else misfit(entry)


def is_line_unsure(line: bytes) -> bool:
    """Whether a line of a log is an unsure outcome, of which no kernel is made."""
    try:
        return bool(json.loads(line)["unsure"])
    except caught(ValueError, TypeError, KeyError, RecursionError):  # damaged, or it is sure
        return False


def misfit(entry: Record) -> str | None:
    """Why this te_select cannot use a record, or None if it can."""
    import tvm  # noqa: PLC0415 - some ask for a threshold only

    if entry.tvm != tvm.__version__:
        return f"it is of TVM {entry.tvm}, this is {tvm.__version__}"
    if not entry.kind:
        return f"its target {entry.target} is of no kind of machine that te_select knows"
    target = resolved(entry.target)
    if not target:
        return f"its target {entry.target} is none that te_select takes"
    try:
        schedule_of(entry.kind).config_from(entry.config).checked(entry.pattern, target.tvm)
    except caught(ValueError) as error:
        return f"its config does not fit the schedule: {error}"
    return None


@functools.cache
def resolved(target: str) -> ResolvedTarget | None:
    """A record's target; None if it is not valid: some make TVM or LLVM end the process."""
    from te_select.backends.targets import resolve  # noqa: PLC0415 - imports tvm

    try:
        return resolve(json.loads(target))
    except caught(TargetError):
        return None
