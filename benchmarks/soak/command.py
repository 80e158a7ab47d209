"""The command: rounds of attacks in turns, for so many minutes, and a summary.

Attacks take turns, each as long as the others. A round has a number, its seed, which decides what
it draws: run one again with --only NAME --seed N --rounds 1. Ctrl-C ends the run and prints
what was done so far. With --log FILE a later run goes on where this one has ended, and adds to
its counts. The exit code is 1 where something failed.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from soak import summary
from soak.rounds import Worker
from soak.summary import Done

ATTACKS: Mapping[str, str] = {
    "races": "two exporters or two copies write to one path at a time, and a loader reads it",
    "kills": "exporters get SIGKILL at any moment",
    "damage": "libraries, manifests and tuning logs are flipped, cut and edited",
    "timers": "a timer raises exceptions during calls",
    "forks": "processes fork while their threads compile, call and load",
    "fuzz": "random workloads, configs, targets and placements against NumPy, bit for bit",
    "sanitized": "the C half under ASan and UBSan takes and refuses fake tensors",
}
_MINUTES = 10.0
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks that are asked for."""
    given = _parse(arguments)
    done = {name: _begin(given.before.get(name), name, given.seed) for name in given.names}
    last = {name: each.next + (given.rounds or sys.maxsize) for name, each in done.items()}
    ends = time.monotonic() + given.minutes * 60
    workers: dict[str, Worker] = {}
    interrupted = False
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while time.monotonic() < ends:
            left = [each for name, each in done.items() if each.next < last[name]]
            if not left:
                break
            _round(min(left, key=lambda each: each.seconds), workers)
            if given.log is not None:
                summary.write(given.log, (given.before | done).values())
    except KeyboardInterrupt:
        interrupted = True
    finally:
        for worker in workers.values():
            worker.close()
    print(summary.table(done.values()))
    if any(each.failures for each in done.values()):
        return 1
    return _INTERRUPTED if interrupted else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    listed = "\n".join(f"    {name:<12}{what}" for name, what in ATTACKS.items())
    parser = argparse.ArgumentParser(
        prog=summary.COMMAND,
        description=f"{__doc__}\nThe attacks:\n\n{listed}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, help=f"for all attacks; default {_MINUTES:.0f}")
    parser.add_argument("--only", help="a list of attacks, such as races,kills; default all")
    parser.add_argument("--seed", type=int, help="of the first round; default 0, or as --log says")
    parser.add_argument("--rounds", type=int, help="of each attack; default as many as fit")
    parser.add_argument("--log", type=Path, help="a file to keep counts in, and to go on from")
    given = parser.parse_args(arguments)
    names = list(ATTACKS) if given.only is None else given.only.split(",")
    if unknown := [name for name in names if name not in ATTACKS]:
        parser.error(f"--only names {unknown[0]!r}; expected some of {', '.join(ATTACKS)}")
    given.names = [name for name in ATTACKS if name in names]
    if given.minutes is None:
        given.minutes = _MINUTES if given.rounds is None else float("inf")
    if not given.minutes > 0 or (given.rounds is not None and given.rounds < 1):
        parser.error("--minutes and --rounds are positive numbers")
    if given.seed is not None and given.seed < 0:
        parser.error(f"--seed is {given.seed}; expected 0 or more")
    try:
        given.before = {} if given.log is None else summary.read(given.log)
    except (OSError, ValueError) as error:
        parser.error(f"--log: {error}")
    return given


def _begin(before: Done | None, name: str, seed: int | None) -> Done:
    """Where an attack goes on: from the seed that is given, or from what was done before."""
    done = before or Done(name, seed or 0, seed or 0)
    if seed is not None:
        done.first, done.next = min(done.first, seed), seed
    return done


def _round(attack: Done, workers: dict[str, Worker]) -> None:
    """Run the next round of an attack, and say how it went."""
    worker = workers.setdefault(attack.name, Worker(f"soak.{attack.name}"))
    start = time.monotonic()
    seed = attack.next
    counts, failures = worker.run(seed)
    seconds = time.monotonic() - start
    attack.add(counts, failures, seconds)
    tried = sum(n for what, n in counts.items() if what != "failures")
    ending = f"{counts['failures']} FAILURES" if failures else "nothing found"
    print(f"{attack.name} {seed}: {tried:,} tried in {seconds:.1f} s, {ending}", flush=True)
    for failure in failures:
        print(f"    {failure}", flush=True)
