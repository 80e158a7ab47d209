"""How busy other programs keep the servers of a fleet: counted there, and read here."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import tvm_ffi

from te_select.timing.cores import LIMITS, Load
from te_select.tuning.fleet import measurer as fleet
from te_select.tuning.task import Built
from tests.support.tuning_candidates import candidate


def used():
    """CPU seconds of the CPUs that this process may use."""
    cpus = [psutil.cpu_times(percpu=True)[i] for i in os.sched_getaffinity(0)]
    return sum(c.user + c.nice + c.system + c.irq + c.softirq + c.steal for c in cpus)


def test_probe_counts_what_the_servers_cpus_do(tmp_path, monkeypatch):
    monkeypatch.setenv(LIMITS[0], "3")
    monkeypatch.setenv(LIMITS[1], "4,2")
    probe = tvm_ffi.load_module(fleet._compile_probe(tmp_path))
    least = time.monotonic(), used(), time.process_time()
    said = str(probe["load"]()).split("\n")
    most = time.monotonic(), used(), time.process_time()
    for low, value, high in zip(least, map(float, said[:3]), most, strict=True):
        assert low - 1e-5 <= value <= high + 1e-5
    assert said[3:] == [str(len(os.sched_getaffinity(0))), "3", "4,2"]


class Idle(fleet.Server):
    """A server whose answers are given."""

    answers: Iterator[dict[str, Any]]

    def is_running(self):
        return True

    def measure(self, *_job):
        return next(self.answers)


def test_watch_on_a_fleet_says_what_the_busiest_server_says(tmp_path, monkeypatch):
    monkeypatch.undo()  # the fixture that counts all cores as idle
    measurer = object.__new__(fleet.FleetMeasurer)
    measurer._servers = servers = [Idle(tmp_path) for _ in range(2)]
    job = [Built(candidate(), Path("a.so"))]

    def run(server, load):
        answers = {"seconds": [1.0], "load": list(load)}, {"failure": "it crashed"}
        servers[server].answers = iter(answers)
        for _ in answers:
            servers[server].run(job, None, 9)

    run(0, Load(1, 8, 1))  # before the watch
    watch = measurer.watch()
    run(0, Load(1, 2, 1))
    assert watch.others() == pytest.approx(1.0)
    run(0, Load(3, 1, 1))
    run(1, Load(2, 2, 1))
    assert watch.others() == pytest.approx(0.5)
