"""A tracker and servers of TVM's RPC, as processes on this machine."""

import contextlib
import random
import subprocess
import sys
from os import environ, killpg, pathsep
from signal import SIGKILL
from time import monotonic, sleep

from te_select import TuningError
from te_select.tuning.fleet import tracker

HOST = "127.0.0.1"
KEY = "kind"
STARTUP_SECONDS = 120
TRACKER = """
import sys
from tvm.rpc.tracker import Tracker
first = int(sys.argv[1])
tracker = Tracker("127.0.0.1", port=first, port_end=first + 1000, silent=True)
print(tracker.port, flush=True)
tracker.proc.join()
"""


class Fleet:
    """Some servers of one key."""

    def __init__(self, servers, folder):
        self.folder = folder
        self._processes = []
        # If torch is installed, tvm imports it, which takes longer than all the rest.
        (folder / "torch.py").write_text("raise ImportError")
        # Each takes the first port that is free, and says which; few others begin at the same one.
        first = random.randrange(10_000, 30_000)
        process = self._start("-c", TRACKER, str(first), stdout=subprocess.PIPE)
        self.port = int(process.stdout.readline())
        server = ["-m", "tvm.exec.rpc_server", "--host", HOST, "--silent", "--key", KEY]
        server += ["--tracker", f"{HOST}:{self.port}"]
        for k in range(1, servers + 1):
            self._start(*server, "--port", str(first + k), "--port-end", str(first + 1000))
        self.servers = self._processes[1:]
        self._wait(servers)

    @property
    def url(self):
        return f"rpc://{HOST}:{self.port}/{KEY}"

    def registered(self):
        try:
            return tracker.servers((HOST, self.port), KEY)
        except TuningError:
            return 0

    def end(self, server):
        """End like a machine that loses power."""
        killpg(self.servers[server].pid, SIGKILL)

    def close(self):
        for process in self._processes:
            with contextlib.suppress(ProcessLookupError):
                killpg(process.pid, SIGKILL)
            process.wait()

    def _start(self, *arguments, stdout=None):
        with (self.folder / f"{len(self._processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                stdout=stdout or log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                env=self._environment(),
            )
        self._processes.append(process)
        return process

    def _environment(self):
        paths = filter(None, [str(self.folder), environ.get("PYTHONPATH", "")])
        # A killed server leaves its temporary files behind.
        return {**environ, "TMPDIR": str(self.folder), "PYTHONPATH": pathsep.join(paths)}

    def _wait(self, servers):
        end = monotonic() + STARTUP_SECONDS
        while self.registered() < servers:
            if monotonic() > end or any(one.poll() is not None for one in self._processes):
                self.close()
                logs = "\n".join(log.read_text() for log in self.folder.glob("*.log"))
                raise RuntimeError(f"the fleet did not start:\n{logs}")
            sleep(0.2)
