"""Measures on the servers of an RPC tracker, several at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tvm_ffi import libinfo

from te_select.backends.c_compiler import compile_library
from te_select.errors import TuningError
from te_select.timing.cores import Load, Watch
from te_select.tuning.fleet.tracker import Tracker
from te_select.tuning.measuring.candidate import Built, Measurement
from te_select.tuning.measuring.jobs import Job, Jobs
from te_select.tuning.measuring.local import RunWorker, each_measured
from te_select.tuning.measuring.measurer import Measurer
from te_select.tuning.measuring.process import WorkerError, WorkerTimeoutError

FLEET_WORKER = "te_select.tuning.fleet.worker"
PATIENCE = 60.0  # seconds without any server; one that was stopped by mistake is back by then
CONNECT_SECONDS = 60.0  # an idle machine takes 1 s; a client that gives up ends the server as well
NETWORK_SECONDS = 15.0  # to send and to answer, beyond the job's limit that the server keeps
GRACE_SECONDS = 2.0  # for candidates still running when a run is abandoned; one takes 0.3 s
RETRY_SECONDS = 1.0  # between attempts to get a server
MOST_SERVERS = 64  # each has a process of 0.3 GB here
_PROBE = Path(__file__).with_name("probe.c")


class LostError(Exception):
    """A server that was lost; the message says why."""


class Server:
    """A place for one connection to a server.

    Parameters
    ----------
    folder
        For the files of the worker that keeps the connection.
    probe
        The library that every session gets.

    Attributes
    ----------
    load
        What its CPUs did during all jobs up to now.
    """

    def __init__(self, folder: Path, probe: Path) -> None:
        self.worker = RunWorker(FLEET_WORKER, folder)
        self.is_connected = False
        self.load = Load()
        self._connecting = threading.Lock()
        self._probe = probe
        self._generation = 0  # of the worker that made the connection

    def connect(self, tracker: Tracker, wanted: Callable[[], bool]) -> bool:
        """Get a server from the tracker, as long as one is wanted.

        Raises
        ------
        LostError
            If the server that the tracker has chosen cannot be reached.
        TuningError
            If the tracker does not answer, or no worker can be started.
        """
        self.worker.start()  # takes seconds, during which no server should be held
        chosen = tracker.request(wanted)
        if chosen is None:
            return False
        host, port, _ = chosen
        with self._connecting:
            try:
                answer = self.worker.request(CONNECT_SECONDS, "connect", *chosen, self._probe)
            except WorkerError as error:
                raise LostError(f"the connection to {host}:{port} {error}") from error
            if "failure" in answer:
                raise LostError(f"{host}:{port} cannot be reached: {answer['failure']}")
            self.is_connected = True
            self.worker.prepared, self._generation = None, self.worker.generation
        return True

    def run(self, job: Job, limit: float) -> dict[str, Any]:
        """Run a job.

        Parameters
        ----------
        job
            What to run.
        limit
            Seconds that it may take on the server.

        Returns
        -------
        dict
            The worker's answer.

        Raises
        ------
        LostError
            If the server is lost; `is_connected` says so from then on.
        """
        try:
            self.worker.start()
            if self.worker.generation != self._generation:
                raise WorkerError("has died")
            answer = self.worker.measure(job.built, job.rounds, limit, NETWORK_SECONDS)
        except WorkerTimeoutError as error:
            answer = {"lost": f"a server does not answer: it {error}"}
        except WorkerError as error:
            answer = {"lost": f"the connection {error}"}
        if "lost" in answer:
            self.disconnect()
            raise LostError(answer["lost"])
        self.load = Load(*map(sum, zip(self.load, answer.get("load", Load()), strict=True)))
        if any(each.get("tainted") for each in (answer, *answer.get("results", ()))):
            self.disconnect()
        return answer

    def interrupt(self) -> None:
        """Make the request that another thread waits for fail.

        If a connection is being made, wait until it is complete and the probe has arrived. A client
        that dies earlier takes the server with it.
        """
        with self._connecting:
            if self.is_connected:
                self.worker.interrupt()

    def disconnect(self) -> None:
        """Give the server back."""
        self.is_connected = False
        if self.worker.is_running():
            with contextlib.suppress(WorkerError):
                self.worker.request(CONNECT_SECONDS, "disconnect")


class FleetMeasurer(Measurer):
    """Measures on every server that has registered under a key; a server runs one job at a time.

    If a candidate's server is lost, the candidate is run once more on another server.

    Parameters
    ----------
    address
        Host and port of the tracker.
    key
        The key under which the servers are registered.
    jobs, timeout
        As for `Measurer`.

    Raises
    ------
    TuningError
        If the tracker does not answer, or no server has the key.
    """

    def __init__(
        self, address: tuple[str, int], key: str, jobs: int | None, timeout: float
    ) -> None:
        self._tracker = Tracker(address, key)
        self._tracker.servers()
        super().__init__(jobs, timeout)
        self._servers: list[Server] = []
        try:
            self._probe = _compile_probe(self.folder)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the servers back, end the workers and remove their files."""
        for server in self._servers:
            server.worker.stop()
        super().close()

    @property
    def batch(self) -> int:
        """How many candidates are built before they are run."""
        return max(super().batch, 2 * len(self._servers))

    def watch(self) -> Watch:
        """Watch the servers, while candidates are checked and timed there."""
        return Watch(lambda: [server.load for server in self._servers])

    def _run(self, jobs: Sequence[Sequence[Built]], rounds: int | None) -> Iterator[Measurement]:
        """Let the servers do the jobs."""
        if not jobs:
            return
        self._grow()
        work = Jobs([Job(built, rounds) for built in jobs])
        threads = [
            threading.Thread(target=self._serve, args=(server, work), daemon=True)
            for server in self._servers
        ]
        for thread in threads:
            thread.start()
        try:
            for job, answer in work.answers(self._is_connected, PATIENCE):
                yield from each_measured(job.built, answer)
        except BaseException:  # abandoned, interrupted, or no server is left
            work.stop()
            self._give_back(threads)
            raise
        for thread in threads:
            thread.join()

    def _is_connected(self) -> bool:
        return any(server.is_connected for server in self._servers)

    def _give_back(self, threads: Sequence[threading.Thread]) -> None:
        """Give all servers back; candidates that are almost done may finish first."""
        end = time.monotonic() + GRACE_SECONDS
        for server, thread in zip(self._servers, threads, strict=True):
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                server.interrupt()
                thread.join()
            server.disconnect()

    def _grow(self) -> None:
        """Make room for servers that have registered since."""
        try:
            registered = self._tracker.servers()
        except TuningError:
            if not self._servers:
                raise
            return  # servers that are connected need no tracker
        while len(self._servers) < min(registered, MOST_SERVERS):
            self._servers.append(Server(self.folder, self._probe))

    def _serve(self, server: Server, jobs: Jobs) -> None:
        """Let one server take jobs until all are done."""
        try:
            while not jobs.over.is_set():
                if not server.is_connected and not self._connect(server, jobs):
                    continue
                job = jobs.take()
                if job is None:
                    return
                try:
                    answer = server.run(job, self.timeout * len(job.built))
                except LostError as error:
                    jobs.lost(job, str(error))
                    continue
                if not server.is_connected:
                    jobs.reason = "a candidate has failed there"
                jobs.done(job, answer)
        except Exception as error:  # otherwise nobody would see the thread's error
            jobs.failed(error)

    def _connect(self, server: Server, jobs: Jobs) -> bool:
        try:
            return server.connect(self._tracker, lambda: not jobs.over.is_set())
        except (LostError, TuningError) as error:
            jobs.reason = str(error)
            time.sleep(RETRY_SECONDS)
            return False


def _compile_probe(folder: Path) -> Path:
    library = folder / "probe.so"
    options = ["-O2", "-pthread", *(f"-I{path}" for path in libinfo.include_paths())]
    options += [f"-L{Path(libinfo.find_libtvm_ffi()).parent}", "-ltvm_ffi"]
    compile_library([_PROBE], library, *options)
    return library
