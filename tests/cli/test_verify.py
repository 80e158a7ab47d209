"""``te-select verify``: libraries that pass, and those that fail."""

import os
from errno import EDQUOT, EFBIG, EIO
from pathlib import Path
from unittest.mock import Mock

from pytest import mark

import te_select
from te_select.runtime.call.kernel import FORCED_LEVEL
from te_select.verify.checks import CHECKS
from tests.support import flat_and_scalar, masked_rows
from tests.support.cli import refused, run, run_json
from tests.support.machines import on_x86_64


@mark.parametrize(
    "error, said",
    [
        (MemoryError("no 1 PiB"), "there is not enough memory: no 1 PiB"),
        (OSError(EDQUOT, "full"), "standard output cannot be used: full"),
        (OSError(EFBIG, "full"), "standard output cannot be used: full"),
        (OSError(EIO, "full"), "standard output cannot be used: full"),
        (OSError(EIO, "broken", "a.so"), "a.so cannot be used: broken"),
    ],
)
def test_error_of_the_system_is_one_line(error, said, one, monkeypatch):
    monkeypatch.setattr("te_select.cli.console._drop_output", list)
    monkeypatch.setattr("te_select.verify.verify.verify_kernel", Mock(side_effect=error))
    assert refused("verify", one, code=1) == f"te-select: error: {said}\n"


def test_file_that_is_no_regular_one_is_not_waited_for(tmp_path):
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for file in (pipe, Path("/dev/zero")):
        said = refused("compile", "-o", tmp_path / "x.so", "--workloads", file)
        assert f"{file} is not a regular file; expected a JSON list of" in said


def test_verify_passes_every_check_of_every_kernel(two):
    document = run_json("verify", two)
    assert document["passed"]
    checks = {(r["kernel"], r["check"]) for r in document["results"]}
    assert len(checks) == 2 * len(CHECKS)
    assert run("verify", two).exit_code == 0


def test_verify_shows_a_failure_and_exits_1(one, monkeypatch):
    monkeypatch.setattr("te_select.verify.verify.first_difference", lambda *_: "out[0,0] is 0x0")
    result = run("verify", one, "--check", "random", "--seed", "3")
    assert result.exit_code == 1
    assert "message  out[0,0] is 0x0" in result.stdout
    assert f"te-select verify {one} --kernel" in result.stdout
    assert " --seed 3 --check random\n" in result.stdout
    assert "\npassed   False\nseed     3\n" in result.stdout
    assert "  0 of 1 passed\n" in result.stdout
    assert not run_json("verify", one)["passed"]


def test_verify_of_one_kernel(two):
    name = flat_and_scalar(4, "int16").name
    document = run_json("verify", two, "--kernel", name, "--check", "bytes")
    assert [(r["kernel"], r["check"]) for r in document["results"]] == [(name, "bytes")]
    assert "expected one of select_int16" in run("verify", two, "--kernel", "x").stderr


@on_x86_64
def test_level_of_the_flag_comes_before_that_of_the_variable(tmp_path, monkeypatch):
    workload = masked_rows(4, 5)
    path = te_select.export([workload], tmp_path / "mask.so", "x86-64,x86-64-v2")
    monkeypatch.setenv(FORCED_LEVEL, "x86-64-v2")
    flags = ("--check", "random", "--level", "x86-64")
    document = run_json("verify", path, *flags, "--seed", "3")
    assert document["level"] == "x86-64"
    (result,) = document["results"]
    flags = f"--kernel {workload.name} --seed 3 --check random --level x86-64"
    assert result["command"] == f"te-select verify {path} {flags}"
