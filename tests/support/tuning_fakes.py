"""A measurer that measures nothing: times are a function of the config."""

import itertools
from collections.abc import Callable

from te_select import Workload
from te_select.timing.cores import Watch
from te_select.tuning.task import Candidate, Measurement

Seconds = Callable[[Candidate], float | None]

ROWS = Workload((1 << 20, 1), (1 << 20, 3), (1 << 20, 3))  # a hundred configs; rows share vectors
SMALL = Workload((1024,), (1024,), (1024,))
FEW = Workload((), (), ())  # one element: a config for each vector width
BIG = Workload((1, 1, 1024, 1024), (4, 12, 1024, 1024), ())


def by_unroll(candidate):
    """Twice as fast with 8 vectors in flight as with 4, and so on."""
    return 1e-3 / candidate.config["unroll"]


def alike(_candidate):
    """All configs take the same time."""
    return 1e-3


class FakeMeasurer:
    """A fake of `te_select.tuning.measuring.Measurer`.

    It calls ``after`` when a candidate was measured, and ``finals`` before candidates take turns,
    with itself and what is measured.
    """

    batch = 8

    def __init__(self, seconds=by_unroll, stop_after=None, *, after=None, finals=None):
        self.seconds = seconds
        self.stop_after = stop_after
        self.after = after or (lambda *_: None)
        self.finals = finals or (lambda *_: None)
        self.measured = []
        self.rounds = []
        self.noise = itertools.cycle((1.0, 1.004, 0.996, 1.002))
        self.closed = False

    def measure(self, candidates):
        for candidate in candidates:
            if self.stop_after is not None and len(self.measured) == self.stop_after:
                raise KeyboardInterrupt
            self.measured.append(candidate)
            measured = self._measurement(candidate, 3)
            self.after(self, candidate)
            yield measured

    def interleave(self, candidates, rounds):
        self.finals(self, candidates)
        self.rounds.append(rounds)
        return [self._measurement(candidate, rounds) for candidate in candidates]

    @property
    def machine(self):
        return "a CPU"

    def watch(self):
        return Watch(list)  # tests say what it says

    def launch(self):
        pass

    def close(self):
        self.closed = True

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def _measurement(self, candidate, count):
        seconds = self.seconds(candidate)
        if seconds is None:
            return Measurement(candidate, None, "it crashed: SIGSEGV")
        return Measurement(candidate, tuple(seconds * next(self.noise) for _ in range(count)), None)
