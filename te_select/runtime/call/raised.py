"""Where an exception comes from: a kernel's refusal, a failed conversion, or somewhere else.

A call first passes its arguments to the compiled code unchanged. If the code refuses them, the call
adapts them. Meanwhile a signal handler may raise at any moment. Its exception belongs to the
program, and must never be taken for a refusal.
"""

from __future__ import annotations

import functools
import inspect
import signal
from types import CodeType, FrameType
from typing import Any

from te_select.errors import ArgumentError

_CONVERSIONS = "tvm_ffi/cython/"  # in the names of the files where tvm-ffi converts arguments


def is_refusal(error: Exception) -> bool:
    """Whether compiled code of ours refused the arguments, or tvm-ffi could not convert them."""
    if hasattr(error, "__tvm_ffi_error__"):
        return isinstance(error, (TypeError, ValueError))  # other types: the kernel itself failed
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and _CONVERSIONS in traceback.tb_frame.f_code.co_filename


def is_of_allocation(error: Exception) -> bool:
    """Whether an output could not be made: NumPy or torch raised it directly in the call's code."""
    alone = error.__traceback__ is not None and error.__traceback__.tb_next is None
    return alone and isinstance(error, (MemoryError, RuntimeError, ValueError))


def is_of_signal_handler(error: BaseException) -> bool:
    """Whether an exception passed through a signal handler of this process, written in Python."""
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code in handlers or _was_given_its_caller(frame):
            return True
        traceback = traceback.tb_next
    return False


def of_operands(error: Exception) -> ArgumentError:
    """The error of a call whose operands cannot be used, because their library raised another."""
    reason = str(error).strip().partition("\n")[0]
    return ArgumentError(f"the operands cannot be used: {type(error).__name__}: {reason}")


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
