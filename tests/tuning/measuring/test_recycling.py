"""When processes that measure are ended, and libraries removed; no process is started."""

from pytest import fixture, mark, raises

from te_select import TuningError
from te_select.tuning.measuring.measurer import BUILD_WORKER, RUN_WORKER, LocalMeasurer
from te_select.tuning.measuring.process import Worker, WorkerError
from te_select.tuning.options import open_measurer, parse_runner
from te_select.tuning.task import Built, Candidate
from tests.support import flat_and_scalar, python

W, OTHER = (flat_and_scalar(n) for n in (7, 9))
RIGHT, WRONG = {"seconds": (1e-3, 2e-3)}, {"failure": "out[0,0] is not what NumPy selects"}


def candidate(workload=W, **config):
    return Candidate(workload, "native", config)


class Fake:
    """In the place of a worker's process: writes down what it is asked, and how often it ends."""

    def __init__(self, monkeypatch):
        self.requests, self.answers, self.ended, self.running = [], [], [], True
        monkeypatch.setattr("te_select.tuning.measuring.process.Worker.request", self.request)
        monkeypatch.setattr(Worker, "kill", lambda worker: self.ended.append(worker.module))
        monkeypatch.setattr(Worker, "interrupt", lambda worker: self.ended.append("interrupted"))
        monkeypatch.setattr(Worker, "is_running", lambda worker: self.running)
        monkeypatch.setattr(Worker, "start", lambda worker: self.requests.append(("start", 0)))

    def request(self, seconds, name, *given):
        self.requests.append((name, seconds, *given))
        if name == "build_candidate":
            given[1].parent.mkdir()
            given[1].touch()
        answer = self.answers.pop(0) if self.answers and name != "prepare" else {}
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def named(self, name):
        return [request[1:] for request in self.requests if request[0] == name]


@fixture
def fake(monkeypatch):
    return Fake(monkeypatch)


@fixture
def measurer(fake):
    with LocalMeasurer(1, 30.0) as opened:
        yield opened
        fake.ended.clear()
    assert fake.ended == [RUN_WORKER, BUILD_WORKER]
    assert not opened.folder.exists()


def built(count=1):
    return [Built(candidate(unroll=k), f"{k}.so") for k in range(count)]


@mark.parametrize(
    "answer, ends",
    [
        ({"results": [RIGHT, RIGHT]}, False),
        ({"results": [RIGHT, WRONG]}, True),
        ({"results": [WRONG, RIGHT]}, True),
        ({"failure": "the operands take 9 GiB"}, True),
        (WorkerError("crashed"), True),
    ],
)
def test_process_is_kept_only_if_all_candidates_were_right(measurer, fake, answer, ends):
    """A wrong one may have written anywhere."""
    fake.answers = [answer]
    found = list(measurer._run([built(2)], 3))
    assert fake.ended == ends * [RUN_WORKER]
    answer = {"failure": "the run crashed"} if isinstance(answer, WorkerError) else answer
    for one, said in zip(found, answer.get("results", [answer] * 2), strict=True):
        assert (one.failure, one.seconds) == (said.get("failure"), said.get("seconds"))


def test_process_ends_before_it_has_too_many_libraries(measurer, fake, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.measurer.RECYCLE_AFTER", 4)
    fake.answers = [{"results": [RIGHT] * n} for n in (2, 2, 1, 3, 1)]
    ends = []
    for count in (2, 2, 1, 3, 1):
        list(measurer._run([built(count)], None))
        ends.append(len(fake.ended))
    assert ends == [0, 0, 1, 1, 2]


def test_library_count_begins_anew_after_a_failure(measurer, fake, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.measurer.RECYCLE_AFTER", 4)
    fake.answers = [{"results": [WRONG] * 3}, {"results": [RIGHT] * 4}]
    for count in (3, 4):
        list(measurer._run([built(count)], None))
    assert len(fake.ended) == 1


def test_request_has_the_seconds_of_each_library(measurer, fake, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.measurer.memory_needed", lambda _: 40e6)
    fake.answers = [{"results": [RIGHT] * 3}]
    list(measurer._run([built(3)], 5))
    assert fake.named("prepare") == [(62.0, W, candidate().mask)]  # 60 s, and 20 MB a second
    assert fake.named("measure") == [(90.0, ["0.so", "1.so", "2.so"], 5, 90.0)]


def test_operands_that_no_memory_holds_are_not_asked_for(measurer, fake, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.measurer.refusal", lambda _: "too large")
    (found,) = measurer._run([built()], None)
    assert (found.failure, fake.named("prepare"), fake.named("measure")) == ("too large", [], [])


def files(measurer):
    return sorted(path.name for path in measurer.folder.iterdir())


def test_libraries_stay_until_another_workload_is_measured(measurer, fake):
    first, second = candidate(unroll=1), candidate(unroll=2)
    measurer._built([first, second, first])
    assert files(measurer) == ["build0", "build1", "build2"]
    again = measurer._built([second, candidate(unroll=4)])
    assert (len(fake.named("build_candidate")), again[0].path.parent.name) == (4, "build1")
    measurer._built([candidate(OTHER)])
    assert "build1" not in files(measurer) and "build3" not in files(measurer)
    measurer._built([first])
    assert len(fake.named("build_candidate")) == 6


def test_failed_build_is_a_measurement_and_is_tried_again(measurer, fake):
    fake.answers = [{"failure": "no config"}, WorkerError("took longer than 30 s"), {}]
    found = [measurer._built([candidate()])[0] for _ in range(3)]
    assert [each.failure for each in found[:2]] == ["no config", "the build took longer than 30 s"]
    assert isinstance(found[2], Built)
    assert [seconds for seconds, *_ in fake.named("build_candidate")] == [30.0] * 3


def test_abandoned_build_ends_the_builders(measurer, fake):
    fake.answers = [KeyboardInterrupt()]
    with raises(KeyboardInterrupt):
        measurer._built([candidate()])
    assert fake.ended == ["interrupted", BUILD_WORKER]
    assert (measurer._idle.qsize(), measurer._kept) == (1, {})


@mark.parametrize("running", [True, False])
def test_builders_have_started_before_anything_is_timed(measurer, fake, running):
    fake.running = running
    measurer._built([candidate()])
    assert len(fake.named("start")) == running


@mark.parametrize("cpus, jobs", [(1, 1), (3, 3), (16, 16), (40, 16)])
def test_there_is_a_builder_for_each_cpu_up_to_16(fake, monkeypatch, cpus, jobs):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cpus)))
    for asked in (None, 20):
        with LocalMeasurer(asked, 30.0) as opened:
            wanted = asked or jobs
            assert (opened.jobs, len(opened._workers), opened.batch) == (wanted, wanted, 4 * wanted)


@mark.parametrize("runner", ["", "remote", "rpc://h/k", "rpc://h:0/k", "rpc://h:65536/k", 3])
def test_unknown_runner_is_refused(runner):
    with raises(TuningError, match="expected local or rpc://HOST:PORT/KEY"):
        open_measurer(runner)


def test_builder_takes_4_gib_of_memory_or_what_it_may():
    python("""
        from resource import RLIMIT_DATA, getrlimit, setrlimit
        from te_select.tuning.measuring.build_worker import Worker
        first = getrlimit(RLIMIT_DATA)[1]
        for hard, soft in ((first, 4 << 30), (8 << 30, 4 << 30), (3 << 30, 3 << 30)):
            setrlimit(RLIMIT_DATA, (hard, hard))
            Worker()
            assert getrlimit(RLIMIT_DATA) == (soft, hard)
    """)


def test_measuring_imports_no_tvm_but_in_the_build_worker():
    modules = "te_select.tuning.measuring, te_select.tuning.measuring.run_worker"
    assert python(f"import sys, {modules}; print('tvm' in sys.modules)") == "False\n"


@mark.parametrize(
    "runner, found",
    [
        ("local", None),
        ("rpc://h:1/k", (("h", 1), "k")),
        ("rpc://[::1]:65535/a-b", (("::1", 65535), "a-b")),
    ],
)
def test_runner_is_this_machine_or_a_tracker_and_a_key(runner, found):
    assert parse_runner(runner) == found
