"""How many threads a contestant may use, and how busy other programs keep the cores."""

import os
import time
from collections import namedtuple
from types import SimpleNamespace

from pytest import approx, fixture, mark

from te_select.timing import cores
from te_select.timing.cores import Load, Watch
from tests.support.machines import needs_times


@mark.parametrize("ours, openmp, threads", [("3", "5", 3), ("", "5,2", 5), ("x", "5", 1)])
def test_contestants_have_the_threads_that_a_call_has(ours, openmp, threads, monkeypatch):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", ours)
    monkeypatch.setenv("OMP_NUM_THREADS", openmp)
    assert cores.threads() == threads


@fixture
def counted(monkeypatch):
    """Count the cores in use, which other tests are not to do."""
    monkeypatch.undo()


def others(*loads):
    """What a watch says that reads these loads of all machines, at its begin and its end."""
    readings = iter(loads)
    return Watch(lambda: next(readings)).others()


@mark.usefixtures("counted")
def test_other_programs_are_counted_and_the_own_work_is_not():
    assert others([Load(0, 10, 4)], [Load(2, 13, 5)]) == approx(1.0)


@mark.usefixtures("counted")
@mark.parametrize("cpus, threads, cores_of_others", [(8, 4, 1.0), (8, 8, 5.0), (2, 4, 5.0)])
def test_cores_to_spare_do_not_count(cpus, threads, cores_of_others):
    now = Load.read(10.0, 70.0, 20.0, cpus, threads)
    assert others([Load()], [now]) == approx(cores_of_others)


@mark.usefixtures("counted")
def test_busiest_of_several_machines_counts():
    idle, busy = Load(10, 11, 11), Load(10, 25, 10)
    assert others([Load()], [idle, busy, Load()]) == approx(1.5)
    assert others([], []) == 0.0


@needs_times
def test_load_of_this_machine_counts_this_process_and_its_limit(monkeypatch):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "1")
    before = time.process_time()
    load = cores.here()
    assert load.own >= before - 0.1  # counted in hundredths of a second
    assert load.spare == (len(os.sched_getaffinity(0)) - 1) * load.seconds


@mark.usefixtures("counted")
def test_each_kind_of_time_of_a_cpu_counts_or_not(monkeypatch):
    """Each field of the made-up times is another power of two, so a sum says which are in it."""
    import psutil

    names = "user nice system idle iowait irq softirq steal guest guest_nice"
    kinds = namedtuple("kinds", names)
    of_cpu = [kinds(*(2.0**k + 4096 * cpu for k in range(10))) for cpu in range(4)]
    of_process = namedtuple("times", "user system children_user children_system iowait")
    child = SimpleNamespace(cpu_times=lambda: of_process(16.0, 32.0, 64.0, 128.0, 256.0))
    this = SimpleNamespace(
        cpu_times=lambda: of_process(1.0, 2.0, 4.0, 8.0, 512.0), children=lambda recursive: [child]
    )
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: of_cpu)
    monkeypatch.setattr(psutil, "Process", lambda: this)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 3, 9})
    load = cores.here()
    assert load.own == 255.0
    fields = 2 * (1 + 2 + 4 + 32 + 64 + 128)  # guest's time is in user's
    assert load.used == fields + 6 * 4096 * (1 + 3)
