"""What a user is told besides errors: warnings, and what a terminal shows during a build."""

import contextlib
import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping

from te_select.errors.catching import caught

_silent = False
_warned_of: set[str] = set()
_BETWEEN = ("te_select", "contextlib")  # packages of frames between a warning and the caller


def warn(text: str, once: str = "") -> None:
    """Warn at the line that has called te_select, however deep the reason lies.

    Where a filter makes errors of warnings, the text is shown, and the call goes on. Of what has
    one name in ``once``, only the first warning in a process is given.
    """
    if once in _warned_of:
        return
    _warned_of.update([once] if once else [])
    level = 2
    frame = sys._getframe(1)
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    try:
        warnings.warn(text, RuntimeWarning, stacklevel=level)
    except caught(RuntimeWarning) as error:
        warnings.showwarning(error, RuntimeWarning, frame.f_code.co_filename, frame.f_lineno)


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
