"""``te-select torch``."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from te_select.operator import family
from tests.support.cli import run, run_json


def test_library_needs_torch_and_holds_the_family(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = {"w2": family.parts()["w2"]}
    monkeypatch.setattr(family, "parts", lambda: parts)
    path = tmp_path / "libte_select_torch.so"
    document = run_json("torch", "build", "-o", path)
    assert document["path"] == str(path) and document["target"] == "native"
    assert document["bytes"] == path.stat().st_size
    header = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    assert "[libtorch_cpu.so]" in header.stdout
    assert "aoti_torch_library_def" in path.read_bytes().decode("latin-1")
    assert str(tmp_path.parent) not in path.read_bytes().decode("latin-1")
    assert run("inspect", path).exit_code == 0


def test_build_without_a_path_or_for_a_gpu_is_refused(tmp_path: Path) -> None:
    missing = run("torch", "build")
    assert missing.exit_code == 2 and "--output" in missing.stderr
    gpu = run("torch", "build", "-o", tmp_path / "x.so", "--target", "cuda:sm_90")
    assert gpu.exit_code == 2 and "no CPU" in gpu.stderr
    assert not list(tmp_path.iterdir())
