"""The measurer's side of a worker."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from te_select.tuning.measuring import process
from te_select.tuning.measuring.process import Worker, WorkerError


@pytest.mark.parametrize("answer", [b"\x00\x00\x00\x04junk", b"\x00\x00\x00\x09cut"])
def test_garbled_answer_is_a_failure_of_the_worker(
    answer: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "EXIT_SECONDS", 0.1)
    monkeypatch.setattr(process, "STALL_SECONDS", 1)
    worker = Worker("tests.support.tuning_garbling_worker", tmp_path)
    with pytest.raises(WorkerError, match="gave no answer that can be read"):
        worker.request(60, "garble", answer)
    assert not worker.is_running()


def test_worker_ends_with_its_measurer_without_its_folder(tmp_path: Path) -> None:
    code = """
        import multiprocessing, sys, threading, time
        from te_select.tuning.measuring import serve
        ours, theirs = multiprocessing.Pipe()
        theirs.close()
        threading.Thread(target=serve._end_with_parent, args=(ours, sys.argv[1])).start()
        time.sleep(20)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "gone")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (1, "")
