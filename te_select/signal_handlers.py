"""Tells the exceptions of the program's signal handlers from those of what they interrupt."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # signal loses a ValueError of a handler
import functools
import inspect
from types import CodeType, FrameType
from typing import Any


def is_of_signal_handler(error: BaseException) -> bool:
    """Whether an exception passed through a signal handler of this process, written in Python."""
    handlers = {_code_of(_signal.getsignal(each)) for each in range(1, _signal.NSIG)} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in handlers or _was_given_its_caller(frame):
            return True
        traceback = traceback.tb_next
    return False


def _code_of(handler: Any) -> CodeType | None:
    """The code that a handler runs, if it is written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not callable(handler):  # no handler, SIG_DFL or SIG_IGN
        return None
    routine = handler if inspect.isroutine(handler) else type(handler).__call__
    code = getattr(inspect.unwrap(routine), "__code__", None)
    return code if isinstance(code, CodeType) else None


def _was_given_its_caller(frame: FrameType) -> bool:
    """Whether a function got the frame that it interrupted, as a signal handler does.

    This recognizes a handler that installed another handler before it raised.
    """
    caller = frame.f_back
    given = frame.f_locals.values()
    return caller is not None and any(
        value is caller or (isinstance(value, tuple) and any(each is caller for each in value))
        for value in given
    )
