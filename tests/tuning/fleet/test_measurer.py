import contextlib

from pytest import fixture, mark, raises

import te_select
from te_select import Workload
from te_select.tuning.fleet import measurer as fleet
from te_select.tuning.options import open_measurer
from tests.support import shapes
from tests.support.tuning_candidates import BAD_BUILDER, candidate
from tests.support.tuning_fleet import Fleet

pytestmark = mark.slow


@fixture(scope="module")
def one(tmp_path_factory):
    """A fleet of one server, for tests that leave it alive."""
    started = Fleet(1, tmp_path_factory.mktemp("one"))
    yield started
    started.close()


def test_run_outlives_a_server_and_stops_without_any(tmp_path, monkeypatch):
    monkeypatch.setattr(fleet, "PATIENCE", 300)  # a busy machine takes long to import tvm
    with (
        contextlib.closing(Fleet(2, tmp_path)) as servers,
        open_measurer(servers.url, jobs=1) as measurer,
    ):
        found = []
        for each in measurer.measure(candidate(unroll=1 << i % 4) for i in range(12)):
            found.append(each)
            if len(found) == 5:
                servers.end(0)
        assert [each.failure for each in found] == [None] * 12
        assert all(0 < min(each.seconds) < 1 for each in found)
        assert servers.registered() == 1

        monkeypatch.setattr("te_select.tuning.fleet.measurer.PATIENCE", 3)
        rest = measurer.measure(candidate() for _ in range(8))
        assert next(rest).seconds
        servers.end(1)
        with raises(te_select.TuningError, match="no server was there for 3 s"):
            list(rest)


def test_server_checks_widths_and_finalists_take_turns(one):
    with open_measurer(one.url, jobs=1) as measurer:
        kinds = ["bool", "float8_e5m2", "bfloat16", "complex64", "complex128"]
        others = [Workload(*shapes("5,1 5,33 ()"), dtype) for dtype in kinds]
        others.append(Workload(*shapes("0,3 0,3 ()")))
        others.append(Workload(*shapes("3,5 2,3,5,4 3,5"), "int16", "pdpd", 1))
        assert [each.failure for each in measurer.measure(map(candidate, others))] == [None] * 7
        (server,) = measurer._servers
        assert server.load.own > 0 and measurer.machine == server.machine != ""
        turns = measurer.interleave([candidate(), candidate(unroll=3), candidate(unroll=1)], 4)
        assert [each.seconds and len(each.seconds) for each in turns] == [4, None, 4]


@mark.parametrize("grace", [fleet.GRACE_SECONDS, 0.0])
def test_abandoned_run_gives_its_server_back(one, monkeypatch, grace):
    """Without grace, the client dies while the server is at work."""
    monkeypatch.setattr("te_select.tuning.fleet.measurer.GRACE_SECONDS", grace)
    with open_measurer(one.url, jobs=1) as measurer:
        abandoned = measurer.measure(candidate() for _ in range(4))
        assert next(abandoned).seconds
        abandoned.close()
        (again,) = measurer.measure([candidate()])
        assert again.seconds
    assert one.registered() == 1


def test_server_outlives_candidates_that_crash_hang_or_err(one, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.measurer.BUILD_WORKER", BAD_BUILDER)
    expected = {
        "crash": "the run lost 2 servers, as a crash does",
        "hang": "the run took longer than 4 s",
        "nothing": "out[0,0] is not what NumPy selects",
        "build crash": "the build crashed",
    }
    with open_measurer(one.url, jobs=1, timeout=4) as measurer:
        faulty = {fault: candidate(fault=fault) for fault in expected}
        good = candidate()
        found = {id(each.candidate): each for each in measurer.measure([*faulty.values(), good])}
        for fault, message in expected.items():
            assert found[id(faulty[fault])].failure.startswith(message), fault
        assert found[id(good)].seconds
    assert one.registered() == 1
