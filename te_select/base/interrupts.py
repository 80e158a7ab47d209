"""Ctrl-C in the process of the command line.

A verb gets KeyboardInterrupt, and cleans up. Before it begins and after it has ended, the process
ends at once: there, an import or Python would print a traceback. Only in Python's own start, before
te_select is imported, nothing can be done. So this file imports what Python has in it.
"""

import _signal  # type: ignore[import-not-found]
import os
import sys

CODE = 130
TEXT = "interrupted; every file is whole, or as it was"
_LINE = f"te-select: error: {TEXT}\n".encode()


def _is_command_line() -> bool:
    """Whether this process was started as ``te-select``, or as ``python -m te_select``."""
    program, *_ = sys.argv or [""]
    of_module = program == "-m" and "te_select" in sys.orig_argv
    return of_module or program.rpartition("/")[2] == "te-select"


def end_at_once() -> None:
    """Let Ctrl-C end the process from now on, unless it is ignored, as behind ``nohup``."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, end)


def raise_again() -> None:
    """Let Ctrl-C raise KeyboardInterrupt from now on, as Python does by itself."""
    if _signal.getsignal(_signal.SIGINT) is end:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def end(*_: object) -> None:
    """End the process as interrupted, at once."""
    os.write(2, _LINE)
    os._exit(CODE)


if _is_command_line():
    end_at_once()
