"""The command: attacks in turns, for so many minutes, and a summary.

The attack that has had the least time comes next. A round has a seed, which decides what it draws.
Run a round again with --only NAME --seed N --rounds 1. Progress goes to standard error, the summary
to standard output. Ctrl-C ends the run with the summary so far. The exit code is 0 if nothing
failed, 1 if something did, and 130 if Ctrl-C came before that.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence

from soak import summary
from soak.rounds import Worker
from soak.summary import Done

ATTACKS: Mapping[str, str] = {
    "repeated": "tests of writers, forks and threads, whose outcome depends on the moment",
    "sanitized": "tests of the C half under ASan and UBSan",
    "damage": "libraries and manifests are flipped, cut and edited",
    "logs": "tuning logs are flipped, cut, shuffled, merged badly and wrong in every field",
    "readers": "model files are wrong in every field",
    "where": "random calls of te_select.where against numpy.where, bit for bit",
    "cache": "cold starts and kills of what fills the cache of where()",
    "fuzz": "random workloads, configs, targets and profiles against NumPy, bit for bit",
}
_MINUTES = 10.0
_FAILED, _INTERRUPTED = 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the attacks that are asked for."""
    given = _parse(arguments)
    done = [Done(name, given.seed) for name in given.only]
    workers = {name: Worker(f"soak.{name}") for name in given.only}
    ends = time.monotonic() + given.minutes * 60
    interrupted = False
    try:
        while time.monotonic() < ends:
            left = [each for each in done if given.rounds is None or each.rounds < given.rounds]
            if not left:
                break
            attack = min(left, key=lambda each: each.seconds)
            _run_round(attack, workers[attack.name])
    except KeyboardInterrupt:
        interrupted = True
    finally:
        for worker in workers.values():
            worker.close()
    print(summary.table(done))
    if any(each.failures for each in done):
        return _FAILED
    return _INTERRUPTED if interrupted else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    listed = "\n".join(f"    {name:<12}{what}" for name, what in ATTACKS.items())
    parser = argparse.ArgumentParser(
        prog=summary.COMMAND,
        description=f"{__doc__}\nThe attacks:\n\n{listed}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, help=f"for all attacks; default {_MINUTES:.0f}")
    parser.add_argument("--only", help="a list of attacks, such as damage,logs; default all")
    parser.add_argument("--seed", type=int, default=0, help="of the first rounds; default 0")
    parser.add_argument("--rounds", type=int, help="of each attack; default as many as fit")
    given = parser.parse_args(arguments)
    names = list(ATTACKS) if given.only is None else given.only.split(",")
    if unknown := [name for name in names if name not in ATTACKS]:
        parser.error(f"--only names {unknown[0]!r}; expected some of {', '.join(ATTACKS)}")
    given.only = [name for name in ATTACKS if name in names]
    if given.minutes is None:
        given.minutes = _MINUTES if given.rounds is None else float("inf")
    if not given.minutes > 0:
        parser.error(f"--minutes is {given.minutes}; expected a positive number")
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds is {given.rounds}; expected 1 or more")
    if given.seed < 0:
        parser.error(f"--seed is {given.seed}; expected 0 or more")
    return given


def _run_round(attack: Done, worker: Worker) -> None:
    """Run the next round of an attack, and report the result."""
    seed = attack.next
    start = time.monotonic()
    tried, failures = worker.run(seed)
    seconds = time.monotonic() - start
    attack.add(tried, failures, seconds)
    ending = f"{len(failures)} FAILURES" if failures else "nothing found"
    say = f"{attack.name}, seed {seed}: {tried.total():,} tried in {seconds:.1f} s, {ending}"
    print("\n    ".join([say, *failures]), file=sys.stderr, flush=True)
