"""A process that answers requests: it is asked, and replaced when it dies, hangs or is ended.

The processes are those of `subprocess` and talk through a `multiprocessing.Pipe`. They are no
`multiprocessing.Process`: that would run a caller's script a second time, and import modules from
the current folder.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from te_select.errors import TuningError

LONGEST = 24 * 60 * 60.0  # seconds that an answer may take; `poll` takes no more than 24 days
STARTUP_SECONDS = 120.0  # importing tvm took 2 s, and 20 s from a cold disk
EXIT_SECONDS = 2.0  # a process that has closed its connection ends at once
GRACE_SECONDS = 5.0  # how much later a worker ends itself if its parent does not
_LONGEST_REASON = 400  # characters; enough for a path and two shapes
_SERVE = "te_select.tuning.measuring.serve"


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
        Which module to run; its class ``Worker`` answers requests
        (`te_select.tuning.measuring.serve`).
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
        paths = [str(Path(entry).resolve()) for entry in sys.path]
        variables = {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(self.folder)}
        self._connection, theirs = multiprocessing.Pipe()
        arguments = str(self.folder), str(theirs.fileno()), self.module
        try:
            with theirs, self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", _SERVE, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=errors,
                    stderr=errors,
                    pass_fds=[theirs.fileno()],
                    cwd=self.folder,  # python -m looks for modules in the current folder
                    env={**os.environ, **variables},
                    start_new_session=True,
                )
        except OSError as error:
            raise TuningError(f"a worker ({self.module}) cannot be started: {error}") from error

    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    def interrupt(self) -> None:
        """Make the request that another thread waits for fail."""
        if (process := self._process) is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def kill(self) -> None:
        """End the process, and every compiler that it has started."""
        self.interrupt()
        process, self._process = self._process, None
        if process is not None:
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
