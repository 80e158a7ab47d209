"""The measurer's side of a worker."""

import sys
import textwrap

import pytest

from te_select.tuning.measuring import process
from te_select.tuning.measuring.process import Worker, WorkerError
from tests.support.programs import ended


@pytest.mark.parametrize("answer", [b"\x00\x00\x00\x04junk", b"\x00\x00\x00\x09cut"])
def test_garbled_answer_is_a_failure_of_the_worker(answer, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "EXIT_SECONDS", 0.1)
    monkeypatch.setattr(process, "GRACE_SECONDS", 0)
    worker = Worker("tests.support.tuning_garbling_worker", tmp_path)
    with pytest.raises(WorkerError, match=r"gave no answer that can be read|crashed \(Alarm"):
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
    done = ended(sys.executable, "-c", textwrap.dedent(code), tmp_path / "gone", timeout=120)
    assert (done.returncode, done.stderr) == (1, "")
