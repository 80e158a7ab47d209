"""The summary of attacks: a table for people."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

COMMAND = "python benchmarks/soak"


@dataclass
class Done:
    """The results of one attack.

    Parameters
    ----------
    name
        The attack.
    first
        The seed of its first round; the next rounds count up.
    rounds
        How many there were.
    seconds
        How long they took.
    tried
        How often each thing was tried.
    failures
        Seed and message of each.
    """

    name: str
    first: int = 0
    rounds: int = 0
    seconds: float = 0.0
    tried: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, str]] = field(default_factory=list)

    @property
    def next(self) -> int:
        """The seed of the next round."""
        return self.first + self.rounds

    def add(self, tried: Counter[str], failures: Iterable[str], seconds: float) -> None:
        """Add the next round."""
        self.tried += tried
        self.failures += [(self.next, failure) for failure in failures]
        self.seconds += seconds
        self.rounds += 1

    def again(self, seed: int) -> str:
        """The command that runs a round again."""
        return f"{COMMAND} --only {self.name} --seed {seed} --rounds 1"


def table(done: Iterable[Done]) -> str:
    """Show how often each thing was tried, and every failure with the command to see it again."""
    lines = [f"{'attack':<12}{'seeds':<10}{'minutes':>8}{'failures':>10}  tried"]
    problems = []
    for each in done:
        seeds = f"{each.first}-{each.next - 1}" if each.rounds else "none"
        row = f"{each.name:<12}{seeds:<10}{each.seconds / 60:>8.1f}{len(each.failures):>10}  "
        tried = [f"{count:>9,} {what}" for what, count in each.tried.items()]
        lines += [row + (tried or ["  nothing"])[0], *(" " * len(row) + one for one in tried[1:])]
        for seed in dict.fromkeys(seed for seed, _ in each.failures):
            messages = [message for at, message in each.failures if at == seed]
            problems += ["", f"{each.name}, seed {seed}; again: {each.again(seed)}"]
            problems += [f"    {message}" for message in messages]
    return "\n".join([*lines, *problems])
