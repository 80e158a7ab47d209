"""Whether what a session has found can be trusted."""

from __future__ import annotations

from te_select.timing.cores import BUSY
from te_select.tuning.trials import Final

SPREAD = 0.5
"""The middle half of the rounds, as a share of their median."""


def doubt(final: Final, busy: float) -> str:
    """Say why an outcome cannot be trusted.

    Parameters
    ----------
    final
        The outcome.
    busy
        How many cores other programs used meanwhile, beyond those to spare.

    Returns
    -------
    str
        The reasons, in one line; empty if there is none.
    """
    reasons = []
    if busy > BUSY:
        reasons.append(f"other programs used {busy:.2f} cores meanwhile")
    if final.spread > SPREAD:
        reasons.append(f"the rounds lay {final.spread:.0%} apart")
    if reasons and final.config != final.default:
        seemed = final.default_seconds / final.seconds
        reasons.append(f"a config that seemed {seemed:.2f} times as fast is not recorded")
    return "; ".join(reasons)
