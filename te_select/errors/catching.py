"""How te_select catches the exceptions of others.

A signal handler may raise at any moment, and its exception belongs to the program. So exceptions of
Python and of other libraries are caught by ``except caught(OSError)`` and ``suppress`` only.
"""

import _signal  # type: ignore[import-not-found] # signal loses a ValueError of a handler
import contextlib
import functools
import inspect
import sys
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, TypeVar

_Kind = TypeVar("_Kind", bound=Exception)


def caught(*kinds: type[_Kind]) -> tuple[type[_Kind], ...]:
    """Filter of an ``except`` that lets a signal handler's exceptions pass: the kinds, or none.

    Python evaluates it once there is an exception.
    """
    error = sys.exc_info()[1]
    return () if isinstance(error, kinds) and _is_of_signal_handler(error) else kinds


def asked(value: Any, name: str, default: Any = None) -> Any:
    """An attribute of another library's object; the default also if asking for it raises."""
    try:
        return getattr(value, name, default)
    except caught(Exception):
        return default


def is_a(value: Any, kind: Any) -> bool:
    """Whether another library's object is of a type; not if its ``__class__`` raises.

    The type may be a name such as ``"torch.Tensor"``; then nothing is imported.
    """
    if isinstance(kind, str):
        module, _, name = kind.rpartition(".")
        kind = getattr(sys.modules.get(module), name, ())
    try:
        return isinstance(value, kind)
    except caught(Exception):
        return False


@contextlib.contextmanager
def suppress(*kinds: type[Exception]) -> Iterator[None]:
    """Suppress exceptions of some kinds, unless a signal handler raised them."""
    try:
        yield
    except caught(*kinds):
        return


def _is_of_signal_handler(error: BaseException) -> bool:
    """Whether an exception passed through a signal handler of this process, written in Python."""
    handlers = {_code_of(_signal.getsignal(each)) for each in range(1, _signal.NSIG)} - {None}
    return any(
        frame.f_code in handlers or _was_given_its_caller(frame)
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


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
        value is caller
        or (issubclass(type(value), tuple) and any(each is caller for each in value))
        for value in given
    )
