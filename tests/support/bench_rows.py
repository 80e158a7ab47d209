"""Made-up rows of the bench."""

from te_select import Workload
from te_select.bench.row import Row
from te_select.bench.suite import Entry
from te_select.timing.inputs import Mask
from te_select.timing.rounds import Timing

ENTRY = Entry("small", Workload((4, 1), (4, 5), ()), "a test")


def row(times=None, **fields):
    """A row in which each contestant took so many seconds, in one round or in several."""
    timings = {
        name: Timing(seconds if isinstance(seconds, tuple) else (seconds,))
        for name, seconds in (times or {}).items()
    }
    known = {
        "entry": ENTRY,
        "mask": Mask(),
        "moved": 1,
        "cache": "hot",
        "config": {},
        "origin": "default",
        "rounds": max([1, *(len(each.seconds) for each in timings.values())]),
        "timings": timings,
        "roofs": {},
        "how": {},
        "wrong": {},
        "unsupported": {},
    }
    return Row(**{**known, **fields})
