"""A process that answers requests: it is asked, and replaced when it dies, hangs or is ended.

The processes are those of `subprocess` and talk through a `multiprocessing.Pipe`. They are no
`multiprocessing.Process`: that would run a caller's script a second time, and import modules from
the current folder. Their own side is `serve`, by ``python -m`` and this module's name, with FOLDER,
HANDLE and MODULE. A worker's module has a class ``Worker``. Its methods answer the requests of
their names.
"""

import contextlib
import importlib
import math
import multiprocessing
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from te_select.base import imports
from te_select.base.scratch import NoRoomError
from te_select.errors import SelectError, TuningError

LONGEST = 24 * 60 * 60.0  # seconds that an answer may take; `poll` takes no more than 24 days
STARTUP_SECONDS = 120.0  # importing tvm took 2 s, and 20 s from a cold disk
EXIT_SECONDS = 2.0  # a process that has closed its connection ends at once
GRACE_SECONDS = 5.0  # how much later a worker ends itself if its parent does not
_LONGEST_REASON = 400  # characters; enough for a path and two shapes
_SELF = "te_select.tuning.measuring.process"  # in a worker it is called __main__


class WorkerError(Exception):
    """A worker that died during a request, or did not answer in time; the message says which."""


class Worker:
    """A Python process that answers requests, one at a time.

    It is started at the first request, or before by `launch`. It runs in a process group of its
    own, so that Ctrl-C does not reach it. It ends when its connection is closed, so that it never
    outlives this process. Its temporary files lie in ``folder``.

    Parameters
    ----------
    module
        Which module to run; its class ``Worker`` answers requests.
    folder
        For temporary files and for the worker's prints. The last worker whose connection breaks
        removes it.
    """

    def __init__(self, module: str, folder: Path) -> None:
        self.module = module
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False  # whether the process has said that it takes requests
        self._errors = folder / f"{module.rpartition('.')[2]}-{id(self):x}.log"

    def request(self, seconds: float, name: str, *arguments: Any) -> dict[str, Any]:
        """Ask, and wait for the answer.

        Parameters
        ----------
        seconds
            How long to wait.
        name, arguments
            The method of the worker, and what it takes.

        Raises
        ------
        WorkerError
            If the worker died, or gave no answer in time; then it has been ended.
        TuningError
            If no worker can be started, or it has no room for temporary files.
        """
        self.start()
        try:
            with contextlib.suppress(OSError):  # the answer will say why it died
                self._connection.send((name, arguments, seconds + GRACE_SECONDS))
            answer = self._answer(seconds)
        except BaseException:  # Ctrl-C too: the next request would read the answer to this one
            self.kill()
            raise
        if "fatal" in answer:
            raise TuningError(f"measuring cannot go on: {answer['fatal']}")
        return answer

    def start(self) -> None:
        """Start the process unless it runs, and wait until it is ready; raises as `launch`."""
        self.launch()
        if self._is_ready:
            return
        try:
            self._answer(STARTUP_SECONDS)
        except WorkerError as error:
            self.kill()
            raise TuningError(f"a worker ({self.module}) cannot be started: {error}") from error
        self._is_ready = True

    def launch(self) -> None:
        """Begin to start the process, unless it runs; a process that has died is replaced.

        Raises
        ------
        TuningError
            If it cannot be started.
        """
        if self.is_running():
            return
        self.kill()
        self._is_ready = False
        paths = os.pathsep.join(str(Path(entry).resolve()) for entry in sys.path)
        folder = str(self.folder)
        self._connection, theirs = multiprocessing.Pipe()
        handle = theirs.fileno()
        try:
            with theirs, self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", _SELF, folder, str(handle), self.module],
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    pass_fds=[handle],
                    cwd=folder,  # python -m looks for modules in the current folder
                    env={**os.environ, "PYTHONPATH": paths, "TMPDIR": folder},
                    start_new_session=True,
                )
        except OSError as error:
            raise TuningError(f"a worker ({self.module}) cannot be started: {error}") from error

    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    def interrupt(self) -> None:
        """Make the request that another thread waits for fail."""
        if process := self._process:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process, and every compiler that it has started."""
        self.interrupt()
        process, self._process = self._process, None
        if process:
            process.wait()
            self._connection.close()

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            if self._connection.poll(seconds):
                return dict(self._connection.recv())
        except Exception as error:  # a worker that has died, or that a candidate has damaged
            raise WorkerError(self._cause_of_death()) from error
        raise WorkerError(f"took longer than {seconds:g} s")

    def _cause_of_death(self) -> str:
        assert self._process is not None
        try:
            code = self._process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "gave no answer that can be read"
        if code >= 0:
            cause = f"ended with exit code {code}"
        elif code == -signal.SIGKILL:
            cause = "was killed by the system (SIGKILL), as it does when memory runs out"
        else:
            cause = f"crashed ({signal.strsignal(-code)})"
        printed = self._errors.read_bytes().decode(errors="replace").strip().splitlines()
        return one_line(f"{cause}: {printed[-1]}" if printed else cause)


def one_line(text: str) -> str:
    """Shorten a text to one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 3] + "..."


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
