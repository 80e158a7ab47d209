"""How busy other programs keep the servers of a fleet: counted there, and read here."""

import os
from time import monotonic, process_time
from types import SimpleNamespace

import psutil
import tvm_ffi
from pytest import approx

from te_select.timing.cores import Load
from te_select.tuning.fleet import measurer as fleet


def used():
    """CPU seconds of the CPUs that this process may use."""
    cpus = [psutil.cpu_times(percpu=True)[i] for i in os.sched_getaffinity(0)]
    return sum(c.user + c.nice + c.system + c.irq + c.softirq + c.steal for c in cpus)


def test_probe_counts_what_the_servers_cpus_do(tmp_path, monkeypatch):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "3")
    probe = tvm_ffi.load_module(fleet._compile_probe(tmp_path))
    least = monotonic(), used(), process_time()
    said = str(probe["load"]()).split("\n")
    most = monotonic(), used(), process_time()
    for low, value, high in zip(least, map(float, said[:3]), most, strict=True):
        assert low - 1e-5 <= value <= high + 1e-5
    assert said[3:] == [str(len(os.sched_getaffinity(0))), "3"]


def test_watch_on_a_fleet_says_what_the_busiest_server_says(monkeypatch):
    monkeypatch.undo()  # the fixture that counts all cores as idle
    measurer = object.__new__(fleet.FleetMeasurer)
    measurer._servers = one, other = [SimpleNamespace(load=Load(1, 8, 1)), SimpleNamespace()]
    other.load = Load()
    watch = measurer.watch()
    one.load = Load(2, 10, 2)
    assert watch.others() == approx(1.0)
    one.load, other.load = Load(5, 11, 3), Load(2, 2, 1)
    assert watch.others() == approx(0.5)
