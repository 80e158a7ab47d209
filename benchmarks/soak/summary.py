"""What attacks have done so far: kept in a file, and shown as a table."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

COMMAND = "python benchmarks/soak"


@dataclass
class Done:
    """What one attack has done.

    Parameters
    ----------
    name
        The attack.
    first, next
        The seed of its first round, and that of the round to come.
    seconds
        How long its rounds took.
    counts
        How often each thing was tried.
    failures
        Seed and message of each.
    """

    name: str
    first: int = 0
    next: int = 0
    seconds: float = 0.0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, counts: Counter[str], failures: Iterable[str], seconds: float) -> None:
        """Add the round to come."""
        self.counts += counts
        self.failures += [(self.next, failure) for failure in failures]
        self.seconds += seconds
        self.next += 1

    def again(self, seed: int) -> str:
        """The command that runs a round again."""
        return f"{COMMAND} --only {shlex.quote(self.name)} --seed {seed} --rounds 1"


def read(path: Path) -> dict[str, Done]:
    """Read what was done before; nothing where there is no file.

    Raises
    ------
    ValueError
        If the file is not what `write` writes.
    """
    if not path.exists():
        return {}
    try:
        attacks = [Done(**each) for each in json.loads(path.read_text())]
        for each in attacks:
            each.counts = Counter(each.counts)
            each.failures = [(int(seed), str(message)) for seed, message in each.failures]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a log of this command: {error}") from error
    return {each.name: each for each in attacks}


def write(path: Path, done: Iterable[Done]) -> None:
    """Write what was done, as a whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps([asdict(each) for each in done], indent=1) + "\n")
    temporary.replace(path)


def table(done: Iterable[Done]) -> str:
    """Show how often each thing was tried, and every failure with the command to see it again."""
    lines = [f"{'attack':<12}{'seeds':<16}{'minutes':>8}{'failures':>10}  tried"]
    problems = []
    for each in done:
        seeds = f"{each.first} to {each.next - 1}" if each.next > each.first else "none"
        failures = each.counts["failures"]
        row = f"{each.name:<12}{seeds:<16}{each.seconds / 60:>8.1f}{failures:>10}"
        tried = [f"{n:,} {what}" for what, n in sorted(each.counts.items()) if what != "failures"]
        lines += [f"{row}  {(tried or ['nothing'])[0]}", *(" " * 48 + one for one in tried[1:])]
        problems += [
            f"{each.name}, seed {seed}: {message}\n    {each.again(seed)}"
            for seed, message in each.failures
        ]
    return "\n".join([*lines, "", *problems] if problems else lines)
