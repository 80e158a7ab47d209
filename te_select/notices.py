"""What a terminal shows while kernels are built, which takes seconds."""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator, Mapping

_silent = False


def silence() -> None:
    """Show nothing from now on, as the command line does, which shows progress of its own."""
    global _silent  # noqa: PLW0603 - for the process
    _silent = True


@contextlib.contextmanager
def shown(line: str, told: Callable[[], Mapping[str, str]] = dict) -> Iterator[None]:
    """Show a line on stderr, if that is a terminal, until the work is done.

    If then ``told`` has an ``"advice"``, it is shown once in a process.
    """
    if _silent or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(line)
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r" + " " * len(line) + "\r")
        sys.stderr.flush()
    if advice := told().get("advice"):
        _advise(advice)


@functools.cache
def _advise(advice: str) -> None:
    sys.stderr.write(f"te_select: {advice}\n")
