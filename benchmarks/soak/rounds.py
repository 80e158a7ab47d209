"""Runs rounds of attacks in processes of their own; this is the parent's side."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from soak.found import one_line

ROOT = Path(__file__).resolve().parents[2]
ROUND_SECONDS = 300.0  # most rounds take five seconds; one that takes this long hangs
_ROUNDS_A_WORKER = 20  # then a new process: libraries stay loaded, and each takes a descriptor


class Worker:
    """A process that runs rounds of one attack; it is started anew when it has died.

    Parameters
    ----------
    module
        The attack's module.
    seconds
        How long a round may take.
    """

    def __init__(self, module: str, seconds: float = ROUND_SECONDS) -> None:
        self._module = module
        self._seconds = seconds
        self._rounds = 0
        self._process: subprocess.Popen[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="soak-")
        self._note = Path(self._folder.name, "note")
        self._messages = Path(self._folder.name, "messages")

    def run(self, seed: int) -> tuple[Counter[str], list[str]]:
        """Run the round of a seed; returns how often each thing was tried, and what failed."""
        if self._rounds >= _ROUNDS_A_WORKER:
            self.stop()
        process = self._process or self._start()
        self._rounds += 1
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has died; there is no answer, then
            process.stdin.write(f"{seed}\n")
            process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self._seconds)
        answer = process.stdout.readline() if ready else ""
        if answer:
            counts, failures = json.loads(answer)
            return Counter(counts), failures
        if ready:
            code = process.wait()
            end = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        else:
            end = f"{self._seconds:.0f} s without an end"
        self.stop()
        doing = one_line(self._note.read_text(errors="replace")) if self._note.exists() else ""
        said = self._messages.read_text(errors="replace").strip().splitlines()[-1:]
        failure = f"the process came to {end}" + (f" at: {doing}" if doing else "")
        return Counter(), [failure + (f" ({one_line(said[0])})" if said else "")]

    def stop(self) -> None:
        """End the process and those that it has started; the next round starts a new one."""
        process, self._process, self._rounds = self._process, None, 0
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def close(self) -> None:
        """End the process for good, and remove all temporary files."""
        self.stop()
        self._folder.cleanup()

    def _start(self) -> subprocess.Popen[str]:
        self._note.unlink(missing_ok=True)
        temporary = tempfile.mkdtemp(dir=self._folder.name)
        paths = (str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", ""))
        with self._messages.open("w") as messages:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "soak.worker", self._module, str(self._note)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                text=True,
                env=os.environ
                | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "TMPDIR": temporary},
                start_new_session=True,  # only we get Ctrl-C, and its children can be ended with it
            )
        return self._process
