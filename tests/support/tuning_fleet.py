"""A tracker and servers of TVM's RPC, as processes on this machine."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

from te_select import TuningError
from te_select.tuning.fleet.tracker import Tracker

HOST = "127.0.0.1"
KEY = "kind"
STARTUP_SECONDS = 120


class Fleet:
    """Some servers of one key."""

    def __init__(self, servers, folder):
        self.folder = folder
        self.port = free_port()
        self._processes = []
        # Where torch is installed tvm imports it, which takes longer than all the rest.
        (folder / "torch.py").write_text("raise ImportError")
        self._start("tracker", self.port)
        for _ in range(servers):
            self._start("server", free_port(), "--tracker", f"{HOST}:{self.port}", "--key", KEY)
        self.servers = self._processes[1:]
        self._wait(servers)

    @property
    def url(self):
        return f"rpc://{HOST}:{self.port}/{KEY}"

    def registered(self):
        try:
            return Tracker((HOST, self.port), KEY).servers()
        except TuningError:
            return 0

    def end(self, server):
        """What a machine does that loses power."""
        os.killpg(self.servers[server].pid, signal.SIGKILL)

    def close(self):
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, what, port, *arguments):
        command = [sys.executable, "-m", f"tvm.exec.rpc_{what}", "--host", HOST, "--silent"]
        command += ["--port", str(port), "--port-end", str(port + 1), *arguments]
        with (self.folder / f"{what}{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                env=self._environment(),
            )
        self._processes.append(process)

    def _environment(self):
        paths = [str(self.folder), os.environ.get("PYTHONPATH", "")]
        # A killed server leaves its temporary files behind.
        return {
            **os.environ,
            "TMPDIR": str(self.folder),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }

    def _wait(self, servers):
        end = time.monotonic() + STARTUP_SECONDS
        while self.registered() < servers:
            if time.monotonic() > end or any(one.poll() is not None for one in self._processes):
                self.close()
                logs = "\n".join(log.read_text() for log in self.folder.glob("*.log"))
                raise RuntimeError(f"the fleet did not start:\n{logs}")
            time.sleep(0.2)


def free_port():
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return probe.getsockname()[1]
