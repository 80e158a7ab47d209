"""The measurer's side of a worker."""

import multiprocessing
import subprocess
from signal import ITIMER_REAL
from unittest.mock import Mock

from pytest import fixture, mark, raises

from te_select import TuningError
from te_select.tuning.measuring import process
from te_select.tuning.measuring.process import Worker, WorkerError
from tests.support import script


@mark.parametrize("answer", [b"\x00\x00\x00\x04junk", b"\x00\x00\x00\x09cut"])
def test_garbled_answer_is_a_failure_of_the_worker(answer, tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.process.EXIT_SECONDS", 0.1)
    monkeypatch.setattr("te_select.tuning.measuring.process.GRACE_SECONDS", 0)
    worker = Worker("tests.support.tuning_garbling_worker", tmp_path)
    with raises(WorkerError, match=r"gave no answer that can be read|crashed \(Alarm"):
        worker.request(3, "garble", answer)
    assert not worker.is_running()


def test_worker_ends_with_its_measurer_without_its_folder(tmp_path):
    code = """
        import multiprocessing, sys, threading, time
        from te_select.tuning.measuring import process
        ours, theirs = multiprocessing.Pipe()
        theirs.close()
        threading.Thread(target=process._end_with_parent, args=(ours, sys.argv[1])).start()
        time.sleep(20)
    """
    done = script(code, tmp_path / "gone", timeout=120)
    assert (done.returncode, done.stderr) == (1, "")


class Process:
    """A process that has ended with a code, or goes on."""

    pid = 1 << 30

    def __init__(self, code):
        self.code = code

    def poll(self):
        return self.code

    def wait(self, timeout=None):
        if self.code is None and timeout is not None:
            raise subprocess.TimeoutExpired("it", timeout)

        return self.code


@fixture
def worker(tmp_path, monkeypatch):
    monkeypatch.setattr("os.killpg", lambda *_: None)
    made = Worker("module", tmp_path)
    made._process = Process(None)
    made._is_ready = True
    made._connection, made.theirs = multiprocessing.Pipe()
    made._errors.write_text("first line\n\nlast   line\n")
    return made


@mark.parametrize(
    "code, said",
    [
        (3, "ended with exit code 3: last line"),
        (0, "ended with exit code 0: last line"),
        (-9, "was killed by the system (SIGKILL), as it does when memory runs out: last line"),
        (-11, "crashed (Segmentation fault): last line"),
        (None, "gave no answer that can be read"),
    ],
)
def test_cause_of_death_is_told_with_the_last_line(worker, code, said):
    worker._process = Process(code)
    assert worker._cause_of_death() == said


def test_request_takes_the_answer_and_says_when_it_is_over(worker):
    worker.theirs.send({"a": 1})
    assert worker.request(5.0, "name", 7) == {"a": 1}
    assert worker.theirs.recv() == ("name", (7,), 5.0 + process.GRACE_SECONDS)
    assert worker.is_running()


@mark.parametrize("answer", ["late", "closed", "fatal"])
def test_request_that_fails_ends_the_process_unless_it_answers(worker, answer):
    if answer == "closed":
        worker.theirs.close()
    if answer == "fatal":
        worker.theirs.send({"fatal": "no room"})
    said = {"late": "took longer than 0 s", "closed": "gave no answer", "fatal": "no room"}[answer]
    with raises(TuningError if answer == "fatal" else WorkerError, match=said):
        worker.request(0.0 if answer == "late" else 5.0, "name")
    assert worker.is_running() == (answer == "fatal")


def test_answer_is_limited_by_the_time_that_passes(tmp_path, monkeypatch):
    """Not by that of the CPU, which a candidate that sleeps does not use."""
    asked = []
    monkeypatch.setattr("signal.setitimer", lambda *timer: asked.append(timer))
    monkeypatch.setattr("signal.signal", Mock())
    for name in ("importlib", "imports", "threading"):
        monkeypatch.setattr(process, name, Mock())
    connection = Mock()
    connection.recv.side_effect = [("build", (), 1.2), EOFError]
    process.serve(str(tmp_path), connection, "module")
    assert asked == [(ITIMER_REAL, 2), (ITIMER_REAL, 0)]


def test_worker_that_does_not_begin_is_an_error_of_tuning(worker, monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.process.STARTUP_SECONDS", 0)
    worker._is_ready = False
    with raises(TuningError, match=r"a worker \(module\) cannot be started: took longer"):
        worker.start()
    assert not worker.is_running()


def test_reason_is_a_line_of_400_characters():
    for error, said in (
        (ValueError("a\n\n b  c"), "ValueError: b c"),
        (ValueError(), "ValueError"),
        (TuningError("a\n b"), "a b"),
        (TuningError("x" * 400), "x" * 400),
        (TuningError("x" * 401), "x" * 397 + "..."),
    ):
        assert process.reason(error) == said
