"""The measurer's side of a worker."""

from __future__ import annotations

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
