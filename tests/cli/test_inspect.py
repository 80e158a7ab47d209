"""``te-select inspect``: what it shows of a library and of a workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import FLAGS, run, run_json


def test_inspect_shows_what_a_library_is(one: Path) -> None:
    result = run("inspect", one)
    assert result.exit_code == 0
    for shown in ("4:ct x 5:t", "168", "origin", "default", "loads here", "tvm"):
        assert shown in result.stdout


def test_inspect_says_why_a_library_does_not_load(one: Path, tmp_path: Path) -> None:
    path = tmp_path / "mask.so"
    path.write_bytes(one.read_bytes() + b"x")
    path.with_suffix(".json").write_bytes(one.with_suffix(".json").read_bytes())
    assert "SHA-256" in run_json("inspect", path)["loads_here"]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("te", "T."),
        ("tir", "T."),
        ("scheduled", "T."),
        ("llvm", "define"),
        ("asm", "ret"),
    ],
)
def test_inspect_shows_every_source(level: str, shown: str, one: Path) -> None:
    from_library = run("inspect", one, "--source", level)
    assert shown in from_library.stdout
    from_flags = run_json("inspect", *FLAGS, "--source", level)
    assert from_flags["kernels"][0]["source"].strip() == from_library.stdout.strip()


def test_inspect_wants_one_kernel_for_a_source(two: Path) -> None:
    result = run("inspect", two, "--source", "te")
    assert result.exit_code == 2
    assert "expected --kernel with one of select_int16" in result.stderr
