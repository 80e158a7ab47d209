"""The client's side of a server, whose session is a stand-in."""

from types import SimpleNamespace
from unittest.mock import MagicMock, Mock

import numpy as np
from pytest import fixture, mark, raises

from te_select import TuningError
from te_select.timing import rounds
from te_select.timing.cores import Load
from te_select.tuning.fleet import worker as module
from te_select.tuning.measuring import run_worker
from tests.support import alike, masked_rows
from tests.support.clock import Clock

W = masked_rows(2, 3)
TARGET = {"name": "x", "architecture": "x86_64", "cpu_features": ["avx2", "fma"]}


@fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("te_select.tuning.fleet.worker.time", made)
    return made


@fixture
def worker(monkeypatch):
    made = module.Worker()
    loads = iter(("10\n4\n2\n8\n8", "13\n9\n4\n8\n6"))
    made.asked = []
    made.at = -1
    made._probe = {
        "watch": made.asked.append,
        "load": lambda: made.asked.append("load") or next(loads),
        "fill": Mock(),
        "compare": lambda *_: made.at,
    }
    made._session = MagicMock()
    made._features = {"sse2", "avx2", "fma"}
    made._inputs = MagicMock(__getitem__=lambda _, name: name)
    made._shape = (2, 3)
    stored = SimpleNamespace(
        manifest=SimpleNamespace(target=TARGET, kernels=[SimpleNamespace(workload=W)])
    )
    monkeypatch.setattr("te_select.tuning.fleet.worker.stored.read", lambda _: stored)
    return made


def test_server_is_watched_while_it_measures_for_its_load(worker, clock, monkeypatch):
    def measure(*_):
        worker.asked.append("measure")
        return {"results": []}

    monkeypatch.setattr("te_select.tuning.measuring.run_worker.Worker.measure", measure)
    found = worker.measure([], None, 1.25)
    # It is watched for whole seconds, then not any more.
    assert worker.asked == [2, "load", "measure", 0, "load"]
    # At the end the server has a limit of 6 threads, so 2 of 8 CPUs are to spare.
    assert found == {"results": [], "load": Load(3.0, 5.0, 2.0, 26.0)}


@mark.parametrize("seconds, said", [(0.9, "lost"), (1.0, "failure"), (5.0, "failure")])
def test_error_is_a_loss_before_the_time_is_over(worker, clock, monkeypatch, seconds, said):
    def fail(*_):
        clock.now = seconds
        raise RuntimeError("the connection is closed")

    monkeypatch.setattr("te_select.tuning.measuring.run_worker.Worker.measure", fail)
    text = {"lost": "RuntimeError: the connection is closed"}.get(said, "the run took longer than")
    assert worker.measure([], None, 1.0)[said].startswith(text)


@mark.parametrize("turns, asked", [(None, rounds.FEWEST), (4, 4)])
def test_kernels_take_so_many_turns(worker, turns, asked):
    found = worker.times({"a": lambda: 1.0, "b": lambda: 2.0}, turns)
    seconds = {name: timing.seconds for name, timing in found.items()}
    assert seconds == {"a": (1.0,) * asked, "b": (2.0,) * asked}


def test_sample_is_warmed_up_and_has_the_seconds_of_others(worker):
    module_there = worker._session.load_module.return_value
    evaluator = module_there.time_evaluator
    evaluator.return_value.return_value.mean = 5e-4
    sample, _ = worker._checked("lib.so")
    worker._session.remove.assert_called_once_with("0.so")
    worker._probe["fill"].assert_called_once()
    assert sample() == 5e-4
    milliseconds = [call.kwargs["min_repeat_ms"] for call in evaluator.call_args_list]
    assert milliseconds == [10, 1]  # WARM_UP, and the least that is not below SHORTEST_SAMPLE
    evaluator.return_value.return_value.mean = 0.0
    assert sample() == 1e-9
    evaluator.return_value.assert_called_with("cond", "then", "else_", "out")


def test_first_wrong_byte_is_told_as_an_element(worker):
    worker.at = 4 * 4 + 3
    with raises(TuningError, match=r"^out\[1,1\] is not what NumPy selects"):
        worker._checked("lib.so")


def test_server_that_lacks_a_feature_gets_nothing(worker):
    worker._features = {"sse2", "fma"}
    with raises(TuningError, match=r"lacks avx2, which target x needs"):
        worker._checked("lib.so")
    worker._session.upload.assert_not_called()


def test_operands_are_those_of_the_problem(worker, monkeypatch):
    monkeypatch.setattr("te_select.tuning.fleet.worker.runtime.tensor", lambda array, device: array)
    monkeypatch.setattr("te_select.tuning.fleet.worker.runtime.empty", lambda *given: given[:2])
    for workload, shape in ((W, (2, 3)), (alike(), (1,))):
        problem = run_worker.Problem(workload)
        worker._hold(problem)
        assert worker._shape == shape
        assert np.array_equal(worker._inputs["cond"], problem.cond.view("u1"))
        assert np.array_equal(worker._inputs["checked_cond"], problem.checked_cond.view("u1"))
        assert worker._inputs["out"] == (problem.expected().shape, "uint32")
