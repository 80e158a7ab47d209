"""What a round of an attack has tried, and what failed."""

import os
from collections import Counter
from pathlib import Path

_NOTE_BYTES = 1000
_MOST_FAILURES = 20  # kept of a round; more would tell nothing new
_FAILURE_LENGTH = 1000


class Found:
    """What a round has tried, and what failed.

    Parameters
    ----------
    note
        A file that says what is being done; it is read if the process dies. None for no file.

    Attributes
    ----------
    counts
        How often each thing was tried, in words of the plural.
    failures
        One line for each, up to 20.
    """

    def __init__(self, note: Path | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._note = None if note is None else os.open(note, os.O_WRONLY | os.O_CREAT, 0o600)

    def __del__(self) -> None:
        if self._note is not None:
            os.close(self._note)

    def tried(self, what: str, count: int = 1) -> None:
        """Count something that was tried."""
        self.counts[what] += count

    def failed(self, message: str) -> None:
        """Add a failure."""
        if len(self.failures) < _MOST_FAILURES:
            self.failures.append(one_line(message)[:_FAILURE_LENGTH])

    def doing(self, what: str) -> None:
        """Note what comes next, in case the process does not survive it."""
        if self._note is not None:
            os.pwrite(self._note, what.encode()[:_NOTE_BYTES].ljust(_NOTE_BYTES), 0)


def one_line(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())
