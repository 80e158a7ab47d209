"""The operands of candidates, and how a wrong candidate is found."""

from unittest.mock import Mock

import numpy as np
import psutil
import pytest

from te_select import Workload
from te_select.timing.inputs import Mask
from te_select.tuning.measuring import run_worker
from te_select.tuning.measuring.run_worker import Problem, memory_needed
from te_select.verify.guarded import GUARD
from tests.support import masked_rows

W = masked_rows(64, 500)


@pytest.fixture(scope="module")
def made():
    return Problem(W)


def right(made):
    def kernel(cond, then, else_, out):
        out.view("u4")[...] = made.expected()

    return kernel


def test_operands_hold_special_values_runs_and_random_bits():
    made = Problem(Workload((1000, 200), (1000, 200), ()))
    flat = made.checked_cond.reshape(-1).view(np.uint8)
    first, second = flat[: flat.size // 2], flat[flat.size // 2 :]
    assert 0.4 < np.count_nonzero(first) / first.size < 0.6
    assert first.max() > 1
    assert np.count_nonzero(np.diff(second)) < second.size / 100
    assert 0.45 < made.cond.mean() < 0.55
    assert np.isnan(made.then).any()
    assert (made.then.reshape(-1)[:200].view(np.uint32) == 0x80000000).any()
    assert made.then.ctypes.data % 64 == made.out.ctypes.data % 64 == 0
    reference = np.where(
        made.checked_cond.view(np.uint8) != 0, made.then.view("u4"), made.else_.view("u4")
    )
    assert np.array_equal(made.expected(), reference)


def test_cond_of_the_timing_is_that_of_the_mask():
    workload = Workload((1000, 200), (1000, 200), ())
    made = Problem(workload, Mask(10, 500))
    flat = made.cond.reshape(-1, 500)
    assert (flat == flat[:, :1]).all()
    assert 0.02 < made.cond.mean() < 0.2


def test_one_wrong_bit_is_found(made):
    def wrong(cond, then, else_, out):
        right(made)(cond, then, else_, out)
        out.view("u4")[63, 499] ^= 1

    assert made.check(right(made)) == ""
    assert made.check(wrong).startswith("out[63,499]")


def test_what_a_candidate_before_it_wrote_does_not_help(made):
    assert made.check(right(made)) == ""
    assert made.check(lambda *_, **__: None).startswith("out[0,0] is 0xa5a5a5")


@pytest.mark.parametrize("place", [-1, -GUARD, 0, GUARD - 1])
def test_byte_outside_the_output_is_found(made, place):
    """Before the first byte of out, or after its last one."""
    at = GUARD + place if place < 0 else GUARD + made.out.nbytes + place

    def stray(cond, then, else_, out):
        right(made)(cond, then, else_, out)
        made._operands.buffers["out"].memory[at] ^= 1

    assert made.check(stray) == "bytes outside out were written"


def test_operands_that_a_candidate_changed_are_found():
    made = Problem(W)

    def greedy(cond, then, else_, out):
        then.view("u4")[...] ^= 1
        cond, then, else_ = (np.asarray(each) for each in (cond, then, else_))
        out.view("u4")[...] = np.where(cond.view("u1") != 0, then.view("u4"), else_.view("u4"))

    assert made.check(greedy) == "operands were changed"


def test_what_does_not_fit_is_refused_before_it_is_made(monkeypatch):
    assert memory_needed(W) == 2 * 64 + 4 * (64 * 500 + 1 + 3 * 64 * 500)
    monkeypatch.setattr(run_worker, "memory_available", lambda: memory_needed(W) - 1)
    assert "GiB of memory are available" in run_worker.refusal(W)
    monkeypatch.setattr(run_worker, "memory_available", lambda: 1 << 29)
    large = masked_rows(1 << 20, 64)
    assert "take 1.0 GiB, and 0.5 GiB of memory are available" in run_worker.refusal(large)
    monkeypatch.setattr(run_worker, "memory_available", lambda: memory_needed(W))
    assert run_worker.refusal(W) == ""


def test_memory_is_what_the_system_or_a_group_still_gives(tmp_path, monkeypatch):
    """The groups around the process's own limit it as well."""
    own, groups = tmp_path / "cgroup", tmp_path / "groups"
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Mock(available=2048 << 10))
    monkeypatch.setattr("te_select.tuning.measuring.run_worker._OWN_GROUPS", own)
    monkeypatch.setattr("te_select.tuning.measuring.run_worker._GROUPS", groups)
    assert run_worker.memory_available() == 2048 << 10
    (groups / "outer/inner").mkdir(parents=True)
    own.write_text("1:cpu:/other\n0::/outer/inner\n")
    (groups / "outer/inner/memory.max").write_text("max\n")
    assert run_worker.memory_available() == 2048 << 10
    (groups / "outer/memory.max").write_text("8192\n")
    assert run_worker.memory_available() == 8192
    (groups / "outer/inner/memory.max").write_text("4096\n")
    assert run_worker.memory_available() == 4096
