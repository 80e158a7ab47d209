"""The worker's own side: it reads messages, answers them, and ends when its pipe is closed."""

from __future__ import annotations

import math
import os
import resource
import select
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from te_select.errors import SelectError
from te_select.runtime.scratch import NoRoomError
from te_select.tuning.measuring.frames import HEADER, one_line, pack, unpack

Handler = Callable[[dict[str, Any]], dict[str, Any]]


def serve(handlers: Mapping[str, Handler], memory: int | None = None) -> None:
    """Answer messages until the pipe ends or ``exit`` is asked.

    If a handler raises, the answer is ``{"failure": reason}``. If there is no room for temporary
    files, which no candidate can help, it is ``{"fatal": reason}``. If the pipe ends without
    ``exit``, the measurer is dead: its folder (the first argument) is removed, and this process
    ends at once.

    Parameters
    ----------
    handlers
        The functions that answer messages, by the message's ``"op"``.
    memory
        Bytes of memory that this process may have; None for no limit.
    """
    requests, replies = _private_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    watcher = threading.Thread(target=_end_with_parent, args=(requests.fileno(),), daemon=True)
    watcher.start()
    try:
        _send(replies, {"ready": True})
        while True:
            message = _receive(requests)
            if message["op"] == "exit":
                return
            # The signal ends native code that holds the interpreter lock and never returns.
            signal.setitimer(signal.ITIMER_REAL, math.ceil(message["seconds"]))
            answer = _answer(handlers, message)
            signal.setitimer(signal.ITIMER_REAL, 0)
            _send(replies, answer)
    except (EOFError, BrokenPipeError):
        watcher.join()


def reason(error: BaseException) -> str:
    """Say in one line what went wrong; for TVM's long messages, the last line."""
    text = str(error).strip()
    if isinstance(error, SelectError):
        return one_line(text)
    lines = text.splitlines()
    return one_line(f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__)


def _end_with_parent(pipe: int) -> None:
    hang_up = select.poll()
    hang_up.register(pipe, 0)
    hang_up.poll()
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    os._exit(1)


def _answer(handlers: Mapping[str, Handler], message: dict[str, Any]) -> dict[str, Any]:
    try:
        return handlers[message["op"]](message)
    except NoRoomError as error:  # the next candidate would have no room either
        return {"fatal": reason(error)}
    except Exception as error:  # whatever a candidate raises is its failure, not the worker's
        return {"failure": reason(error)}


def _private_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Move the pipes away from 0 and 1, so that prints cannot corrupt an answer."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, replies


def _send(replies: IO[bytes], message: dict[str, Any]) -> None:
    replies.write(pack(message))
    replies.flush()


def _receive(requests: IO[bytes]) -> dict[str, Any]:
    header = requests.read(HEADER)
    message = unpack(header + requests.read(int.from_bytes(header, "big")))
    if message is None:
        raise EOFError
    return message
