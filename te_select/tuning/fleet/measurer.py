"""Measures on the servers of an RPC tracker, several at once."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from pathlib import Path
from typing import Any

from tvm_ffi import libinfo

from te_select.backends.c_compiler import compile_library
from te_select.errors import TuningError
from te_select.runtime import c
from te_select.timing.cores import PROCESSORS, Load, Watch
from te_select.tuning.fleet import tracker
from te_select.tuning.measuring.measurer import Measurer, RunWorker, each_measured
from te_select.tuning.measuring.process import LONGEST, WorkerError
from te_select.tuning.task import Built, Measurement

FLEET_WORKER = "te_select.tuning.fleet.worker"
PATIENCE = 60.0  # seconds without any server; one that was stopped by mistake is back by then
NETWORK_SECONDS = 15.0  # to send and to answer, beyond the job's limit that the server keeps
GRACE_SECONDS = 2.0  # for candidates still running when a run is abandoned; one takes 0.3 s
RETRY_SECONDS = 1.0  # between attempts to get a server
MOST_SERVERS = 64  # each has a process of 0.3 GB here
MOST_LOSSES = 2  # servers lost over one job; then the job counts as their cause
_POLL = 0.2  # seconds between looks at whether a server is left
_PROBE = Path(__file__).with_name("probe.c")


class Server(RunWorker):
    """A connection to a server, kept by a process of its own, because that can be ended.

    A call over RPC never ends if the other side hangs.

    Attributes
    ----------
    is_connected, is_at_work
        Whether the process has a server, and whether that has a job.
    load
        What the server's CPUs did during all jobs up to now.
    machine
        Its CPU, in words, once it was connected.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(FLEET_WORKER, folder)
        self.is_connected = self.is_at_work = False
        self.load = Load()
        self.machine = ""

    def connect(self, *where: Any) -> None:
        """Wait for a free server, and connect to it; raises TuningError if that fails."""
        try:
            answer = self.request(LONGEST, "connect", *where)
        except WorkerError as error:
            raise TuningError(f"the connection {error}") from error
        if "failure" in answer:
            raise TuningError(answer["failure"])
        self.machine = answer["machine"]
        self.is_connected = True

    def run(self, built: Sequence[Built], rounds: int | None, limit: float) -> dict[str, Any]:
        """Check and time libraries, in at most ``limit`` seconds there; the worker's answer.

        If the server is lost, that is ``{"lost": why}``. `is_connected` says so from then on.
        """
        try:
            if not self.is_running():  # a new process would have no connection
                raise WorkerError("has died")
            answer = self.measure(built, rounds, limit, NETWORK_SECONDS)
        except WorkerError as error:
            answer = {"lost": f"the connection {error}"}
        self.load = Load(*map(sum, zip(self.load, answer.get("load", Load()), strict=True)))
        if "lost" in answer or any(one.failure for one in each_measured(built, answer)):
            self.kill()  # a wrong candidate may have written anywhere
        return answer

    def kill(self) -> None:
        """End the process, and so give the server back: its session ends when its client does."""
        self.is_connected = False
        super().kill()


class FleetMeasurer(Measurer):
    """Measures on all servers that are free, each one candidate at a time.

    Parameters
    ----------
    address, key
        Of the tracker, and of the servers.
    jobs, timeout
        As for `Measurer`.
    """

    def __init__(
        self, address: tracker.Address, key: str, jobs: int | None, timeout: float
    ) -> None:
        self._where = address, key
        tracker.servers(*self._where)  # fail at once if there are none
        super().__init__(jobs, timeout)
        self._probe = _compile_probe(self.folder)
        self._servers: list[Server] = []
        # Connected ones. SimpleQueue.get of Python 3.11 may forget its timeout if two threads wait.
        self._free: queue.Queue[Server] = queue.Queue()
        self._over = self._closed = False
        self._reason = "none has become free"

    def close(self) -> None:
        """Give all servers back, end the workers and remove their files."""
        self._closed = True
        super().close()

    def watch(self) -> Watch:
        """Watch the servers, each while it runs candidates."""
        return Watch(lambda: [server.load for server in self._servers])

    def _run(self, jobs: Sequence[Sequence[Built]], rounds: int | None) -> Iterator[Measurement]:
        if not jobs:
            return
        self._grow()
        self._over = False
        threads = ThreadPoolExecutor(len(self._servers), "te_select-fleet")
        futures = {threads.submit(self._measured, built, rounds): built for built in jobs}
        try:
            for future in as_completed(futures):
                yield from each_measured(futures[future], future.result())
        except BaseException:  # abandoned, interrupted, or no server is left
            self._over = True
            threads.shutdown(wait=False, cancel_futures=True)
            wait([future for future in futures if future.running()], GRACE_SECONDS)
            for server in self._servers:
                if server.is_at_work:  # a client that dies as it connects takes it along
                    server.interrupt()
            raise
        finally:
            threads.shutdown()

    def _measured(self, built: Sequence[Built], rounds: int | None) -> dict[str, Any]:
        """The answer of one server about libraries; if it is lost, that of another."""
        for _ in range(MOST_LOSSES):
            server = self._server()
            server.is_at_work = True
            answer = server.run(built, rounds, self.timeout * len(built))
            server.is_at_work = False
            self._reason = answer.get("lost", "a candidate has failed there")
            self._offer(server)
            if "lost" not in answer:
                return answer
        return {"failure": f"the run lost {MOST_LOSSES} servers, as a crash does: {self._reason}"}

    def _server(self) -> Server:
        """A connected server, as soon as one is free."""
        last_seen = time.monotonic()
        while not self._over:
            try:
                return self._free.get(timeout=_POLL)
            except queue.Empty:
                if any(server.is_connected for server in self._servers):
                    last_seen = time.monotonic()
            if time.monotonic() - last_seen > PATIENCE:
                raise TuningError(
                    f"no server was there for {PATIENCE:g} s: {self._reason}; expected one to come "
                    "back"
                )
        raise TuningError("the run is over")

    def _grow(self) -> None:
        """Make room for servers that have registered since."""
        try:
            registered = tracker.servers(*self._where)
        except TuningError:
            if not self._servers:
                raise
            return  # servers that are connected need no tracker
        while len(self._servers) < min(registered, MOST_SERVERS):
            server = Server(self.folder)
            self._servers.append(server)
            self._processes.append(server)
            self._offer(server)
        self.batch = max(self.batch, 2 * len(self._servers))

    def _offer(self, server: Server) -> None:
        """Let jobs have a server, once it is connected; until the measurer is closed."""

        def connect() -> None:
            while not (server.is_connected or self._closed):
                try:
                    server.connect(*self._where, self._probe)
                except Exception as error:  # otherwise nobody would see the thread's error
                    self._reason = str(error)
                    time.sleep(RETRY_SECONDS)
            self.machine = ", ".join(sorted({each.machine for each in self._servers} - {""}))
            self._free.put(server)

        threading.Thread(target=connect, daemon=True).start()


def _compile_probe(folder: Path) -> Path:
    library = folder / "probe.so"
    options = ["-O2", "-pthread", *(f"-I{path}" for path in (c.FOLDER, *libinfo.include_paths()))]
    options += [f"-L{Path(libinfo.find_libtvm_ffi()).parent}", "-ltvm_ffi"]
    compile_library([_PROBE, c.FOLDER / "cpu/cpu_features.c", *PROCESSORS], library, *options)
    return library
