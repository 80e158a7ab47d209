import itertools
import select
import signal
import subprocess
import sys
import textwrap
from os import killpg
from pathlib import Path
from time import monotonic, sleep

from pytest import fixture, mark, raises

import te_select
from te_select.tuning.measuring import measurer as module
from te_select.tuning.options import open_measurer
from tests.support.tuning_candidates import (
    BAD_BUILDER,
    INSIDE,
    candidate,
    children,
    environment,
    is_running,
)

pytestmark = mark.slow

PATIENCE = 60  # seconds for a process to do what it always does


@fixture(scope="module")
def measurer():
    with open_measurer(jobs=1) as opened:
        yield opened


@fixture
def bad_measurer(monkeypatch):
    monkeypatch.setattr("te_select.tuning.measuring.measurer.BUILD_WORKER", BAD_BUILDER)
    with open_measurer(jobs=1, timeout=4) as opened:
        yield opened


def command(pid):
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def wait_for(condition):
    end = monotonic() + PATIENCE
    while not condition():
        assert monotonic() < end
        sleep(0.02)


def outcome(measurements, cand):
    return next(m for m in measurements if m.candidate is cand)


def test_faulty_candidate_fails_and_the_next_is_measured(bad_measurer):
    expected = {
        "crash": "the run crashed (Segmentation fault)",
        "abort": "the run crashed (Aborted)",
        "hang": "the run took longer than 4 s",
        "nothing": "out[0,0] is 0xa5a5a5a5, NumPy selects",
        "outside": "bytes outside out were written",
        "build crash": "the build crashed (Segmentation fault)",
        "build hang": "the build took longer than 4 s",
        "build memory": "MemoryError",
    }
    faulty = {fault: candidate(fault=fault) for fault in expected}
    good = [candidate() for _ in expected]
    mixed = itertools.chain.from_iterable(zip(faulty.values(), good, strict=True))
    found = list(bad_measurer.measure(mixed))
    assert all(outcome(found, one).failure is None for one in good)
    for fault, message in expected.items():
        failure = outcome(found, faulty[fault]).failure
        assert failure.startswith(message), fault
        assert len(failure.splitlines()) == 1


def test_full_disk_ends_the_session_and_fails_no_candidate(bad_measurer):
    with raises(te_select.TuningError, match="cannot go on: no temporary folder can be"):
        list(bad_measurer.measure([candidate(fault="no room")]))
    with raises(te_select.TuningError, match="No space left on device"):
        bad_measurer.interleave([candidate(), candidate(fault="no room")], 3)
    (after,) = bad_measurer.measure([candidate()])
    assert after.failure is None


def test_workers_import_together_and_before_a_kernel_is_timed(monkeypatch):
    """All are launched before the first is waited for; all are ready before the first is timed."""
    seen = []
    timed = module.RunWorker.measure

    def measure(self, *args):
        seen.append(all(worker._is_ready for worker in opened._workers))
        return timed(self, *args)

    monkeypatch.setattr("te_select.tuning.measuring.measurer.RunWorker.measure", measure)
    with open_measurer(jobs=2) as opened:
        opened.launch()
        workers = [*opened._workers, opened._worker]
        assert all(worker.is_running() and not worker._is_ready for worker in workers)
        (found,) = opened.measure([candidate()])
        assert found.seconds
        assert seen == [True]


def test_worker_that_died_between_two_candidates_is_replaced(measurer):
    list(measurer.measure([candidate()]))
    measurer._worker.start()
    killpg(measurer._worker._process.pid, signal.SIGKILL)
    measurer._worker._process.wait()
    (found,) = measurer.measure([candidate()])
    assert found.seconds


SESSION = """
    import sys
    from tests.support.tuning_candidates import candidate
    from te_select.tuning.measuring import measurer as module
    from te_select.tuning.options import open_measurer
    module.BUILD_WORKER = "tests.support.tuning_bad_builder"
    measurer = open_measurer(jobs=1, timeout=300)
    print(measurer.folder, flush=True)
    for found in measurer.measure(candidate() for _ in range(2)):
        print(found.failure, flush=True)
    try:
        list(measurer.measure([candidate(fault=sys.argv[1])]))
    except KeyboardInterrupt:
        (again,) = measurer.measure([candidate()])
        measurer.close()
        print("interrupted", again.failure, flush=True)
"""


@fixture(params=["hang", "build hang"])
def session(request, tmp_path):
    """A process that measures, and hangs in a candidate."""
    inside = tmp_path / "inside"
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SESSION), request.param],
        stdout=subprocess.PIPE,
        text=True,
        env={**environment(), INSIDE: str(inside)},
        start_new_session=True,
    ) as process:
        try:
            folder = Path(process.stdout.readline().strip())
            assert [process.stdout.readline().strip() for _ in range(2)] == ["None", "None"]
            wait_for(inside.exists)
            yield process, folder
        finally:
            process.kill()


def test_workers_end_with_their_parent_also_inside_a_candidate(session):
    process, folder = session
    workers = children(process.pid)
    assert len(workers) == 2
    process.kill()
    process.wait()
    wait_for(lambda: not any(map(is_running, workers)) and not folder.exists())


def test_interrupt_is_orderly_and_measuring_can_go_on(session):
    process, folder = session
    killpg(process.pid, signal.SIGINT)
    assert select.select([process.stdout], [], [], PATIENCE)[0]
    assert process.stdout.readline().strip() == "interrupted None"
    assert process.wait(PATIENCE) == 0
    assert not folder.exists()
