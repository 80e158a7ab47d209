"""The parts of the report of a machine."""

import os

import pytest

from te_select.cli.env import environment
from te_select.runtime.call.cpu import features
from tests.support import python

CPUINFO = """\
processor : 0
model name : Fast CPU
flags : fpu avx2

processor : 1
model name : Other CPU
flags : fpu
"""


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO)
    monkeypatch.setattr("te_select.runtime.call.cpu.features._CPUINFO", path)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    features.cpu_info.cache_clear()
    yield path
    features.cpu_info.cache_clear()


def test_threads_of_one_core_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.backends.cpu.environment._CPUS", tmp_path)
    assert environment()["cpu"]["cores"] is None
    for cpu, threads in enumerate(("0,2", "1,3", "0,2", "1,3", "4")):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(f"{threads}\n")
    assert environment()["cpu"]["cores"] == 3


def test_threads_allowed_are_those_of_the_process():
    code = "import os\nfrom te_select.backends.cpu.environment import _cpu\n"
    code += "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
    code += "print(_cpu()['threads'], _cpu()['threads_allowed'])"
    assert python(code) == f"{os.cpu_count()} 1\n"


@pytest.mark.usefixtures("cpuinfo")
def test_name_is_that_of_the_first_cpu():
    assert environment()["cpu"]["name"] == "Fast CPU"


def test_cpu_whose_name_is_not_told_is_its_machine(cpuinfo, monkeypatch):
    cpuinfo.write_text("isa : rv64imafdcv")
    monkeypatch.setattr("platform.processor", str)
    assert features.cpu_name() == "x86_64"


def test_caches_are_named_by_level_and_kind(tmp_path, monkeypatch):
    for cpu, index, level, kind, size in (
        ("cpu0", 0, "1", "Data", "48K"),
        ("cpu0", 1, "1", "Instruction", "32K"),
        ("cpu0", 2, "2", "Unified", "2048K"),
        ("cpu1", 2, "2", "Unified", "512K"),
    ):
        folder = tmp_path / cpu / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr("te_select.backends.cpu.environment._CPUS", tmp_path)
    found = environment()["caches"]
    assert found["L1 Data"] == "48K"
    assert {"48K", "32K", "2048K, 512K"} == set(found.values())
