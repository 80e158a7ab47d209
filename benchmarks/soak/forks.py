"""Forks while threads compile, call and load: every child works, or gets a clear error.

A forked child has the memory of its parent, but none of its other threads. If one of them held a
lock, the lock stays held in the child. Threads for which a loop would wait do not exist.
"""

import contextlib
import functools
import itertools
import os
import random
import select
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import te_select
from soak.found import Found, one_line
from te_select.verify.reference import ints

_CHILD_SECONDS = 60  # a compilation takes a third of a second; a child that takes this long hangs
_LARGE = 1 << 20  # elements, of which several threads take a part each
_ANSWER_BYTES = 4000
_REFUSED = "refused"


def attack(seed: int, found: Found, forks: int = 12) -> None:
    """Fork at random moments, and have each child do something."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        kernel = te_select.compile(_flat(_LARGE), tuning_logs=False)
        path = kernel.export(Path(folder, "large.so"))
        jobs: dict[str, Callable[[int], None]] = {
            "calls": lambda _: _call(kernel),
            "loads": lambda _: _call(te_select.load(path)),
            "compiles": lambda i: _call(te_select.compile(_flat(1000 + i), tuning_logs=False)),
            "exports": lambda i: _call(
                te_select.load(te_select.export([_flat(7000 + i)], Path(folder, f"child{i}.so")))
            ),
            "forks again": lambda i: _fork_again(kernel, i),
        }
        threads: dict[str, Callable[[int], None]] = {
            "while another thread calls": lambda _: _call(kernel),
            "while another thread compiles": lambda i: _call(
                te_select.compile(_flat(2_000_000 + i), tuning_logs=False)
            ),
            "while another thread loads": lambda _: _call(te_select.load(path)),
        }
        for number, (when, busy) in enumerate(threads.items()):
            with _thread(busy, number * 1000) as problems:
                for i in range(forks // len(threads)):
                    what = list(jobs)[(i + seed) % len(jobs)]
                    time.sleep(rng.uniform(0, 0.1))
                    found.doing(f"a child that {what} {when}")
                    found.tried(f"children forked {when}")
                    answer = _in_child(functools.partial(jobs[what], i))
                    if answer.startswith(_REFUSED):
                        found.tried("refusals in words")
                    elif answer:
                        found.failed(f"a child that {what} {when}: {answer}")
            for problem in problems:
                found.failed(f"the parent, {when}: {problem}")


def _flat(elements: int) -> te_select.Workload:
    return te_select.Workload((elements,), (elements,), (elements,))


def _call(kernel: te_select.Kernel | te_select.Library) -> None:
    """Call a kernel, and compare."""
    assert isinstance(kernel, te_select.Kernel)
    (n,) = ints(kernel.workload.out_shape)
    cond = np.arange(n) % 3 == 0
    then = np.ones(n, np.float32)
    else_ = np.zeros(n, np.float32)
    if (kernel(cond, then, else_) != cond).any():
        raise AssertionError("a call gave a wrong result")


def _fork_again(kernel: te_select.Kernel, number: int) -> None:
    """A child of a child."""
    _call(kernel)
    answer = _in_child(lambda: _call(te_select.compile(_flat(3000 + number))))
    if answer and not answer.startswith(_REFUSED):
        raise AssertionError(f"a child of the child: {answer}")


def _in_child(work: Callable[[], None]) -> str:
    """Do something in a forked child; returns what is wrong, or an empty string."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "it ended"
        try:
            work()
            answer = ""
        except te_select.SelectError as error:  # a refusal in words
            answer = f"{_REFUSED if chr(10) not in str(error) else 'in many lines'}: {error}"
        except BaseException as error:
            answer = f"{type(error).__name__}: {error}"
        finally:
            os.write(writing, one_line(answer).encode()[:_ANSWER_BYTES])
            os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], _CHILD_SECONDS)
        if not ready:
            os.kill(child, signal.SIGKILL)
        answer = os.read(reading, _ANSWER_BYTES).decode(errors="replace")
    finally:
        os.close(reading)
    _, status = os.waitpid(child, 0)
    if not ready:
        return f"it hangs ({_CHILD_SECONDS} s)"
    code = os.waitstatus_to_exitcode(status)
    return answer or (f"it came to {signal.Signals(-code).name}" if code < 0 else "")


@contextlib.contextmanager
def _thread(work: Callable[[int], None], first: int) -> Iterator[list[str]]:
    """A thread that repeats something; its problems are added to the list."""
    problems: list[str] = []
    stop = threading.Event()

    def loop() -> None:
        for number in itertools.count(first):
            if stop.is_set():
                return
            try:
                work(number)
            except Exception as error:  # any error is a failure
                problems.append(f"{type(error).__name__}: {error}")
                return

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield problems
    finally:
        stop.set()
        thread.join()
