"""Forks while another thread compiles: the child never waits for a lock that nobody will release.

A forked child has all memory of its parent, but only the thread that forked. If another thread held
a lock at that moment, the lock stays locked in the child for ever. Such locks belong to Python's
imports, to TVM, to LLVM and to te-select. So a fork waits until no other thread is compiling. A
compilation takes a tenth of a second. If the wait would be too long, the child refuses to compile.
"""

from __future__ import annotations

import concurrent.futures.thread
import contextlib
import logging
import os
import threading
from collections.abc import Iterator

from te_select.errors import ToolchainError

# These modules hold locks of their own over a fork. If they were first imported while a fork waits
# here, the fork would release a lock that it has not taken.
_IMPORTED_FIRST = (logging, concurrent.futures.thread)

LONGEST_WAIT = 60.0  # seconds; importing tvm took 20 with a cold disk or a busy machine


class _Gate:
    """Who is compiling, and who is about to fork."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}  # how often each thread has entered
        self._forking = 0
        self._cut = False

    def enter(self) -> None:
        """Begin to compile, once nobody is about to fork."""
        me = threading.get_ident()
        with self._changed:
            if self._cut:
                raise ToolchainError(
                    "this process cannot compile: it was forked while another thread of its parent "
                    "did; compile before the fork, or start processes by spawn"
                )
            if me not in self._inside:
                self._changed.wait_for(lambda: not self._forking)
            self._inside[me] = self._inside.get(me, 0) + 1

    def leave(self) -> None:
        """End what `enter` began."""
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
                self._changed.notify_all()

    def before_fork(self) -> None:
        """Wait until no other thread compiles, and let none begin."""
        me = threading.get_ident()
        with self._changed:
            self._forking += 1
            self._changed.wait_for(lambda: not self._inside.keys() - {me}, LONGEST_WAIT)

    def after_fork_in_parent(self) -> None:
        """Let others go on."""
        with self._changed:
            self._forking -= 1
            self._changed.notify_all()

    def after_fork_in_child(self) -> None:
        """Go on as the only thread; refuse to compile if another one was at it."""
        me = threading.get_ident()
        self._changed = threading.Condition()
        self._forking = 0
        self._cut = self._cut or bool(self._inside.keys() - {me})
        self._inside = {thread: count for thread, count in self._inside.items() if thread == me}


_gate = _Gate()
os.register_at_fork(
    before=_gate.before_fork,
    after_in_parent=_gate.after_fork_in_parent,
    after_in_child=_gate.after_fork_in_child,
)


@contextlib.contextmanager
def held_off() -> Iterator[None]:
    """Delay forks by other threads; a context manager, or a function's decorator.

    For code that takes locks which a child cannot make anew: imports, and everything that TVM does.

    Raises
    ------
    ToolchainError
        In a child that was forked all the same.
    """
    _gate.enter()
    try:
        yield
    finally:
        _gate.leave()
