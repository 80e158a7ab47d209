"""The parts of the report of a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from te_select.backends.cpu import environment as module
from te_select.cli.environment import environment
from te_select.runtime.call.cpu import features

CPUINFO = """\
processor : 0
model name : Fast CPU
physical id : 0
core id : 0
flags : fpu avx2

processor : 1
model name : Other CPU
physical id : 0
core id : 1
flags : fpu

processor : 2
physical id : 1
core id : 0

processor : 3
physical id : 1
core id : 0
"""


@pytest.fixture
def cpuinfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "cpuinfo"
    path.write_text(CPUINFO)
    monkeypatch.setattr(module, "_CPUINFO", path)
    monkeypatch.setattr(features, "_CPUINFO", path)
    for cached in (features.cpu_info, features.features):
        cached.cache_clear()
    yield path
    for cached in (features.cpu_info, features.features):
        cached.cache_clear()


def test_cores_are_counted_in_every_package(cpuinfo: Path) -> None:
    found = environment()["cpu"]
    assert found["cores"] == 3  # the last two are threads of one
    assert found["name"] == "Fast CPU"


def test_features_are_those_of_the_first_cpu(cpuinfo: Path) -> None:
    assert features.features() == {"fpu", "avx2"}
    assert features.missing(["fma", "avx2", "avx"]) == ["avx", "fma"]


def test_cpu_that_says_nothing_lacks_everything(cpuinfo: Path) -> None:
    cpuinfo.unlink()
    features.cpu_info.cache_clear()
    assert features.missing(["avx2"]) == ["avx2"]
    assert environment()["cpu"]["cores"] is None


def test_caches_are_named_by_level_and_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for k, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
    ):
        folder = tmp_path / f"index{k}"
        folder.mkdir()
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    monkeypatch.setattr(module, "_CACHES", tmp_path)
    found = environment()["caches"]
    assert found["L1 Data"] == "48K"
    assert {"48K", "32K", "2048K"} == set(found.values())
