"""Forks while another thread compiles: the child never waits for a lock that nobody will release.

A forked child has all memory of its parent, but only the thread that forked. If another thread held
a lock at that moment, the lock stays locked in the child for ever. Such locks belong to Python's
imports, to TVM, to LLVM and to te-select. So a fork waits until no other thread is compiling. A
compilation takes a tenth of a second. If the wait takes too long, the fork goes ahead, and
compiling in the child raises an error.

What may crash is tried in a child, which may meet the locks of other libraries all the same. So it
has a time limit.
"""

import concurrent.futures.thread
import contextlib
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

from te_select.errors import ToolchainError

# These modules hold locks of their own over a fork. If they were first imported while a fork waits
# here, the fork would release a lock that it has not taken.
_IMPORTED_FIRST = (logging, concurrent.futures.thread)

_PAUSE = 0.001  # seconds between two looks
LONGEST_WAIT = 60.0  # seconds; importing tvm took 20 with a cold disk or a busy machine


class _Gate:
    """Who is compiling, and who is about to fork.

    There is no lock: a child could inherit it locked, and an exception of a signal handler could
    leave it so. Every step is one operation on a set or a dict. Whoever begins says so first, and
    looks at the others then; so of two, at least one sees the other.
    """

    def __init__(self) -> None:
        self._inside: set[tuple[int, object]] = set()  # threads, with a token for each entry
        self._forking: dict[int, float] = {}  # threads, and until when each may wait
        self._alone: set[int] = set()  # those of them that have seen nobody compile
        self._cut = False

    def enter(self, token: object) -> None:
        """Begin to compile, once nobody else is about to fork."""
        me = threading.get_ident()
        is_nested = me in self._threads()
        while True:
            if self._cut:
                raise ToolchainError(
                    "this process cannot compile: it was forked while another thread of its parent "
                    "did; compile before the fork, or start processes by spawn"
                )
            self._inside.add((me, token))
            if is_nested or not self._others_fork(me):
                return
            self.leave(token)
            time.sleep(_PAUSE)

    def leave(self, token: object) -> None:
        """End what `enter` began, or was interrupted in beginning."""
        self._inside.discard((threading.get_ident(), token))

    def before_fork(self) -> None:
        """Wait until no other thread compiles, and let none begin."""
        me = threading.get_ident()
        self._alone.discard(me)
        self._forking[me] = ends = time.monotonic() + LONGEST_WAIT
        while self._threads() - {me}:
            if time.monotonic() > ends:
                return
            time.sleep(_PAUSE)
        self._alone.add(me)

    def after_fork_in_parent(self) -> None:
        """Let others go on."""
        self._alone.discard(threading.get_ident())
        self._forking.pop(threading.get_ident(), None)

    def after_fork_in_child(self) -> None:
        """Go on as the only thread; refuse to compile if another one was at it."""
        me = threading.get_ident()
        self._cut = self._cut or (me not in self._alone and bool(self._threads() - {me}))
        self._inside = {(thread, token) for thread, token in self._inside if thread == me}
        self._forking.clear()
        self._alone.clear()

    def _others_fork(self, me: int) -> bool:
        now = time.monotonic()
        return any(now < ends and me != each for each, ends in self._forking.copy().items())

    def _threads(self) -> set[int]:
        return {thread for thread, _ in self._inside.copy()}


_gate = _Gate()
os.register_at_fork(
    before=_gate.before_fork,
    after_in_parent=_gate.after_fork_in_parent,
    after_in_child=_gate.after_fork_in_child,
)


@contextlib.contextmanager
def no_fork_during() -> Iterator[None]:
    """Delay forks by other threads; a context manager, or a function's decorator.

    For code that takes locks which a child cannot make anew: imports, and everything that TVM does.

    Raises
    ------
    ToolchainError
        In a child that was forked all the same.
    """
    token = object()
    try:
        _gate.enter(token)
        yield
    finally:
        _gate.leave(token)


def try_in_child(action: Callable[[], None], seconds: int) -> int:
    """Run what may end the process in a child process.

    Parameters
    ----------
    action
        What to run. The child ends after it.
    seconds
        Time limit of the child.

    Returns
    -------
    int
        0 if the action returned, 1 if it raised, and -N if signal N ended the child. N is SIGALRM
        if it took too long.
    """
    child = os.fork()
    if not child:
        code = 1
        try:
            gc.disable()  # another library's object may wait for a lock of a thread of the parent
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(seconds)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
