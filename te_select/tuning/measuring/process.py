"""The measurer's side of a worker: it starts a process, asks it, and replaces it when it dies."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from te_select.errors import TuningError
from te_select.tuning.measuring.frames import one_line, pack, unpack

STARTUP_SECONDS = 120.0  # importing tvm took 2 s, and 20 s from a cold disk
EXIT_SECONDS = 2.0  # a worker that waits for a message ends at once
GRACE_SECONDS = 5.0  # how much later a worker ends itself if its parent does not
_CHUNK = 1 << 16
_START = "te_select.tuning.measuring.start"


class WorkerError(Exception):
    """A worker that died during a request; the message is the reason, in one line."""


class WorkerTimeoutError(WorkerError):
    """A worker that did not answer in time."""


class Worker:
    """A Python process that answers messages, one at a time.

    It is started at the first request. It runs in a process group of its own, so that Ctrl-C does
    not reach it. It ends when its pipe is closed, so that it never outlives this process. Its
    temporary files lie in ``folder``.

    Parameters
    ----------
    module
        Which module to run; it calls `te_select.tuning.measuring.serve.serve`.
    folder
        For temporary files and for the worker's prints. The last worker whose pipe breaks removes
        it.
    """

    def __init__(self, module: str, folder: Path) -> None:
        self.module = module
        self.folder = folder
        self.generation = 0  # grows with every start; a new process knows nothing of old requests
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = folder / f"{module.rpartition('.')[2]}-{id(self):x}.log"

    def request(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Ask, and wait for the answer.

        Parameters
        ----------
        message
            What to ask, as JSON types.
        seconds
            How long to wait.

        Returns
        -------
        dict
            The answer.

        Raises
        ------
        WorkerTimeoutError
            If there is no answer in time; the worker has been ended.
        WorkerError
            If the worker died.
        TuningError
            If no worker can be started, or it has no room for temporary files.
        """
        process = self.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # the answer will say why it died
                _write(process, pack({**message, "seconds": seconds + GRACE_SECONDS}))
            answer = self._answer(process, seconds)
        except BaseException:  # Ctrl-C too: the next request would read the answer to this one
            self.kill()
            raise
        if "fatal" in answer:
            raise TuningError(f"measuring cannot go on: {answer['fatal']}")
        return answer

    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it runs; a process that has died is replaced.

        Raises
        ------
        TuningError
            If it cannot be started.
        """
        if self._process is not None and self._process.poll() is None:
            return self._process
        self.kill()
        paths = [str(Path(entry).resolve()) for entry in sys.path]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "TMPDIR": str(self.folder),
        }
        try:
            with self._errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", _START, str(self.folder), self.module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=self.folder,  # python -m looks for modules in the current folder
                    env=environment,
                    start_new_session=True,
                )
            self.generation += 1
            self._answer(self._process, STARTUP_SECONDS)
        except (OSError, WorkerError) as error:
            self.kill()
            raise TuningError(f"a worker ({self.module}) cannot be started: {error}") from error
        except BaseException:
            self.kill()
            raise
        return self._process

    def stop(self) -> None:
        """Ask the process to end; end it by force if it does not."""
        process = self._process
        if process is None:
            return
        with contextlib.suppress(OSError):
            _write(process, pack({"op": "exit"}))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(EXIT_SECONDS)
        self.kill()

    def interrupt(self) -> None:
        """Make the request that another thread waits for fail."""
        if self._process is not None:
            _kill_group(self._process)

    def kill(self) -> None:
        """End the process, and every compiler that it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        _kill_group(process)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _answer(self, process: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        end = time.monotonic() + seconds
        received = b""
        while (message := unpack(received)) is None:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise WorkerTimeoutError(f"took longer than {seconds:g} s")
            part = os.read(pipe, _CHUNK)
            if not part:
                raise WorkerError(self._cause_of_death(process))
            received += part
        return message

    def _cause_of_death(self, process: subprocess.Popen[bytes]) -> str:
        try:
            code = process.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "closed its pipe"
        if code >= 0:
            cause = f"ended with exit code {code}"
        elif code == -signal.SIGKILL:
            cause = "was killed by the system (SIGKILL), as it does when memory runs out"
        else:
            cause = f"crashed ({signal.strsignal(-code)})"
        printed = self._errors.read_bytes().decode(errors="replace").strip().splitlines()
        return one_line(f"{cause}: {printed[-1]}" if printed else cause)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _write(process: subprocess.Popen[bytes], frame: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(frame)
    process.stdin.flush()
