"""The command: rounds in turns, a summary, an exit code; and processes that die in a round."""

import os
from collections import Counter

import pytest

from soak import command
from soak.rounds import Worker


class FakeWorker:
    """Finds a fault in the second round of logs."""

    def __init__(self, module):
        self.module = module

    def run(self, seed):
        failing = self.module == "soak.logs" and seed == 1
        return Counter({"things": 1200}), ["it was lost"] if failing else []

    def close(self):
        pass


def test_failure_is_shown_with_its_seed_and_ends_in_exit_code_1(monkeypatch, capsys):
    monkeypatch.setattr(command, "Worker", FakeWorker)
    assert command.main(["--only", "logs,damage", "--rounds", "2"]) == 1
    shown = capsys.readouterr()
    assert "logs, seed 1: 1,200 tried" in shown.err
    assert "python benchmarks/soak --only logs --seed 1 --rounds 1\n    it was lost" in shown.out


# ---- processes of rounds ------------------------------------------------------------------------

TOY = """
import os, signal, time

def attack(seed, found):
    found.doing(f"thing {seed}")
    found.tried("things", 5)
    if seed == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if seed == 2:
        raise KeyError("no such thing")
    if seed == 3:
        time.sleep(600)
    if seed == 4:
        print("a library prints", flush=True)
        found.failed("of\\n two lines")
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "toy_attack.py").write_text(TOY)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    worker = Worker("toy_attack", seconds=20)
    yield worker
    worker.close()


def test_round_that_kills_its_process_fails_and_the_next_runs(toy):
    assert toy.run(0) == (Counter(things=5), [])
    _, (failure,) = toy.run(1)
    assert "SIGSEGV at: thing 1" in failure
    assert toy.run(5) == (Counter(things=5), [])


def test_round_that_raises_is_a_failure(toy):
    _, (failure,) = toy.run(2)
    assert "KeyError: 'no such thing'" in failure


def test_round_that_hangs_is_a_failure(toy):
    toy._seconds = 2
    _, (failure,) = toy.run(3)
    assert "2 s without an end at: thing 3" in failure


def test_what_a_round_prints_is_no_answer(toy):
    assert toy.run(4) == (Counter(things=5), ["of two lines"])
