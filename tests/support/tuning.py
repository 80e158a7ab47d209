"""Records and measurers for tests of tuning, and tunes by the command line.

Records are made as a session makes them. The measurer measures nothing: times are a function of the
config.
"""

import dataclasses
import itertools
import json

import tvm

from te_select import Workload
from te_select.backends import schedule_of
from te_select.backends.targets import resolve
from te_select.operator.access import access_pattern
from te_select.records import folders, log, writer
from te_select.records.folders import SESSIONS
from te_select.timing.cores import Watch
from te_select.tuning.task import Measurement
from tests.support import flat
from tests.support.cli import run_json

ROWS = Workload((1 << 20, 1), (1 << 20, 3), (1 << 20, 3))  # a hundred configs; rows share vectors
SMALL = flat(1024)
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


V4 = resolve("x86-64-v4")


def default_of(workload, target=V4):
    """The default config."""
    return schedule_of(target.kind).default_config(access_pattern(workload), target.tvm)


def every_config(workload, target=V4):
    """All configs of a space, also those of one effect."""
    rules = schedule_of(target.kind)
    space = rules.space(access_pattern(workload), target.tvm)
    every = itertools.product(*space.values())
    return [rules.Config(**dict(zip(space, values, strict=True))) for values in every]


def record(workload, target, config, seconds=1e-3, **said):
    """A record of a config; if nothing else is said, the default was as fast."""
    found = {"config": dataclasses.asdict(config), "seconds": seconds, "default_seconds": seconds}
    found |= {"trials": 3, "failed": 0, "versions": {"tvm": tvm.__version__}}
    return log.make(workload, target, found | said)


def make(workload, seconds=1e-3, config=None, **said):
    """A record of a config, or of the default."""
    return record(workload, V4, config or default_of(workload), seconds, **said)


def add(
    logs,
    workload,
    target=V4,
    said=None,
    **knobs,
):
    """Record a config of which these knobs differ from the default, and return it."""
    config = dataclasses.replace(default_of(workload, target), **knobs)
    writer.put(
        logs / folders.of_target(target.records), [record(workload, target, config, **said or {})]
    )
    return config


def keys(folder):
    """The names of a folder's records, in their order."""
    return [entry.key for entry in log.read(folder).entries]


def only(folder):
    """The only record of a folder."""
    (entry,) = log.read(folder).entries
    return entry


def edit(folder, change):
    """Change the lines of the records by hand."""
    path = folder / SESSIONS
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def of_another_tvm(entry, tvm="0.1"):
    """The record, as another TVM and te-select had found it."""
    kept = {k: v for k, v in entry.session.items() if k not in ("target", "digest")}
    return log.make(entry.workload, resolve(entry.target), kept | {"versions": {"tvm": tvm}})


def unfinished(folder):
    """The journals in a folder of which the last session is not done."""
    journals = {path.name: path.read_text().split("\n") for path in folder.glob("*.jsonl")}
    return [name for name, lines in journals.items() if '"config": {}' not in lines[-2]]


TARGET = "x86-64-v4"
ON = ["--target", TARGET]
FLAGS = ["--cond", "1024", "--then", "1024", "--else", "1024"]


def flags_of(*workloads):
    """The flags that name workloads."""
    return [word for each in workloads for word in ("--workload", json.dumps(each.to_json()))]


def tuned(folder, fake, *flags):
    """Tune a workload with a new fake measurer, and return the document that is printed."""
    fake()
    return run_json("tune", *(flags or FLAGS), *ON, "--trials", "80", "--tuning-logs", folder)
