"""The examples, run as a user runs them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import te_select

ROOT = Path(__file__).resolve().parent.parent


def run(*command: str | Path) -> str:
    """Standard output of a command that must succeed."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_demo_verifies_the_causal_mask_in_a_process_without_tvm() -> None:
    out = run(sys.executable, ROOT / "examples" / "demo.py")
    assert "bit for bit" in out
    assert "tvm: no" in out


def test_cpp_program_runs_an_exported_kernel(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    workload = te_select.Workload((4, 1), (4, 8), (), "float32")
    library = te_select.compile(workload).export(tmp_path / "mask.so")

    def config(flag: str) -> list[str]:
        return run(sys.executable, "-m", "tvm_ffi.config", flag).split()

    program = tmp_path / "main"
    run(
        compiler,
        ROOT / "examples" / "cpp" / "main.cc",
        *("-o", program, *config("--cxxflags"), *config("--ldflags"), *config("--libs")),
        f"-Wl,-rpath,{config('--libdir')[0]}",
    )
    assert run(program, library) == "32 elements selected from C++\n"
