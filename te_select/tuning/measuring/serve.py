"""The worker's own side: ``python -m te_select.tuning.measuring.serve FOLDER HANDLE MODULE``.

It answers the requests that come through its connection, and ends when that is closed. A worker's
module has a class ``Worker``. Its methods answer the requests of their names.
"""

import importlib
import math
import os
import select
import shutil
import signal
import sys
import threading
from multiprocessing.connection import Connection
from typing import Any

from te_select import imports
from te_select.errors import SelectError
from te_select.runtime.artifact.scratch import NoRoomError
from te_select.tuning.measuring.process import one_line


def serve(folder: str, connection: Connection, module: str) -> None:
    """Answer requests until the connection is closed; then the measurer is dead, or has ended us.

    If a method raises, the answer is ``{"failure": reason}``. If there is no room for temporary
    files, which no candidate can help, it is ``{"fatal": reason}``.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    imports.quickly()
    worker = importlib.import_module(module).Worker()
    watcher = threading.Thread(target=_end_with_parent, args=(connection, folder), daemon=True)
    watcher.start()
    try:
        connection.send({})
        while True:
            name, arguments, seconds = connection.recv()
            # The signal ends native code that holds the interpreter lock and never returns.
            signal.setitimer(signal.ITIMER_REAL, math.ceil(seconds))
            answer = _answer(worker, name, arguments)
            signal.setitimer(signal.ITIMER_REAL, 0)
            connection.send(answer)
    except (EOFError, OSError):
        watcher.join()


def reason(error: BaseException) -> str:
    """Say in one line what went wrong; for TVM's long messages, the last line."""
    text = str(error).strip()
    if isinstance(error, SelectError):
        return one_line(text)
    lines = text.splitlines()
    return one_line(f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__)


def _end_with_parent(connection: Connection, folder: str) -> None:
    hang_up = select.poll()
    hang_up.register(connection, 0)
    hang_up.poll()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


def _answer(worker: Any, name: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    try:
        return dict(getattr(worker, name)(*arguments))
    except NoRoomError as error:  # the next candidate would have no room either
        return {"fatal": reason(error)}
    except Exception as error:  # whatever a candidate raises is its failure, not the worker's
        return {"failure": reason(error)}


if __name__ == "__main__":
    serve(sys.argv[1], Connection(int(sys.argv[2])), sys.argv[3])
