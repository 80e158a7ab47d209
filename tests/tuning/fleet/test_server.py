"""What becomes of a server after a job; no process is started."""

from contextlib import nullcontext
from unittest.mock import Mock

from pytest import fixture, mark, raises

from te_select import TuningError
from te_select.timing.cores import Load
from te_select.tuning.fleet import measurer as module
from te_select.tuning.measuring.process import LONGEST, Worker, WorkerError
from te_select.tuning.task import Built, Candidate
from tests.support import flat_and_scalar

W = flat_and_scalar(7)
BUILT = [Built(Candidate(W, "native", {"unroll": k}), f"{k}.so") for k in range(2)]
LOST = {"lost": "gone"}
RIGHT, WRONG = {"seconds": (1e-3,)}, {"failure": "out[0,0] is not what NumPy selects"}


@fixture
def server(tmp_path, monkeypatch):
    made = module.Server(tmp_path)
    made.requests, made.ended, made.answers = [], [], []

    def request(_worker, *given):
        made.requests.append(given)
        answer = {} if given[1] == "prepare" else made.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    monkeypatch.setattr("te_select.tuning.measuring.process.Worker.request", request)
    monkeypatch.setattr(Worker, "kill", lambda worker: made.ended.append(worker.is_connected))
    monkeypatch.setattr("te_select.tuning.measuring.process.Worker.is_running", lambda _: True)
    made.is_connected = True
    return made


@mark.parametrize(
    "answer, stays",
    [
        ({"results": [RIGHT, RIGHT]}, True),
        ({"results": [RIGHT, WRONG]}, False),
        ({"failure": "it does not load"}, False),
        (LOST, False),
        (WorkerError("crashed"), False),
    ],
)
def test_server_is_given_back_unless_all_candidates_were_right(server, answer, stays):
    server.answers = [answer]
    found = server.run(BUILT, None, 60.0)
    assert (server.is_connected, server.ended) == (stays, [] if stays else [False])
    lost = {"lost": "the connection crashed"}
    assert found == (lost if isinstance(answer, WorkerError) else answer)
    assert server.requests[-1][0] == 60.0 + module.NETWORK_SECONDS
    assert server.requests[-1][1:] == ("measure", ["0.so", "1.so"], None, 60.0)


def test_server_whose_process_has_died_is_lost(server, monkeypatch):
    """A new process would have no connection."""
    monkeypatch.setattr("te_select.tuning.measuring.process.Worker.is_running", lambda _: False)
    assert server.run(BUILT, None, 60.0) == {"lost": "the connection has died"}
    assert not server.requests and not server.is_connected


def test_loads_of_all_jobs_add_up(server):
    for k in range(2):
        server.answers = [{"results": [RIGHT], "load": (1.0, 2.0, 4.0, 8.0 + k)}]
        server.run(BUILT[:1], None, 60.0)
    assert server.load == Load(2.0, 4.0, 8.0, 17.0)


def test_job_of_a_lost_server_goes_to_one_other(monkeypatch):
    run = Mock(side_effect=[LOST, {"results": [RIGHT, RIGHT]}, LOST, LOST])
    monkeypatch.setattr("te_select.tuning.fleet.measurer.Server.run", run)
    monkeypatch.setattr("te_select.tuning.fleet.measurer._compile_probe", str)
    monkeypatch.setattr("te_select.tuning.fleet.tracker.servers", lambda *_: 3)
    monkeypatch.setattr(
        "te_select.tuning.fleet.measurer.Server.connect",
        lambda made, *_: setattr(made, "is_connected", True),
    )
    with module.FleetMeasurer(("h", 1), "k", 1, 4.0) as measurer:
        for said in (None, "the run lost 2 servers, as a crash does: gone"):
            assert [each.failure for each in measurer._run([BUILT], 3)] == [said] * 2
        assert measurer.batch == 6
    run.assert_called_with(BUILT, 3, 8.0)


@mark.parametrize("answer", [WorkerError("took longer"), {"failure": "no server"}])
def test_connection_that_fails_is_an_error(server, answer):
    server.is_connected = False
    server.answers = [answer]
    with raises(TuningError, match=r"the connection took longer|no server"):
        server.connect("tracker", "key")
    assert not server.is_connected
    server.answers = [{"machine": "a CPU"}]
    server.connect("tracker", "key")
    assert (server.is_connected, server.machine) == (True, "a CPU")
    assert server.requests[-1] == (LONGEST, "connect", "tracker", "key")


@mark.parametrize("servers", [0, 1])
def test_gone_tracker_ends_a_run_without_servers_alone(monkeypatch, servers):
    monkeypatch.setattr(module.tracker, "servers", Mock(side_effect=TuningError("gone")))
    measurer = Mock(_servers=[None] * servers, _where=(), batch=1)
    with nullcontext() if servers else raises(TuningError, match="gone"):
        module.FleetMeasurer._grow(measurer)
    assert measurer.batch == 1
