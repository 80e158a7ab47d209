"""The bench for CUDA devices, on a stand-in for the driver: what it calls, ranks and reports."""

import json
from unittest.mock import Mock

import numpy as np
import pytest
import tvm_ffi

from te_select import TargetError, Workload
from te_select.bench.cuda.device_sets import make_sets, strides
from te_select.bench.cuda.peers import PEERS, CudaPeer
from te_select.bench.row import COPY, OURS, Options
from te_select.bench.run import run
from te_select.operator.access import access_pattern
from te_select.runtime.call.cuda import driver
from te_select.timing.cuda import clocks, roof
from te_select.timing.cuda.clocks import Graph, replayed
from te_select.timing.inputs import Mask, make_operands
from tests.support import cli, cuda_standin
from tests.support.bench_rows import ENTRY
from tests.support.cuda_standin import fake_driver, running

W = ENTRY.workload
SMALL = [*cli.FLAGS, "--rounds", "1", "--target", "cuda:sm_90"]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr("te_select.timing.cuda.clocks.SHORTEST_SAMPLE", 1e-5)
    monkeypatch.setattr("te_select.timing.cuda.roof.SETS", (2, 3))
    made = lambda workload, *_: cuda_standin.kernel(workload)  # noqa: E731
    monkeypatch.setattr("te_select.bench.run.compile", made)


class Liar(CudaPeer):
    name = "liar"

    def prepare(self, workload, sets):
        return [lambda: None for _ in sets]


class Queued(CudaPeer):
    name = "queued"

    def prepare(self, workload, sets):
        def call(operands):
            host = operands.host
            host.out[...] = np.where(host.cond, host.then, host.else_)
            return host.out

        return [lambda each=each: call(each) for each in sets]

    def result(self, value, operands):
        return value


def rows(*peers):
    options = Options("cuda:sm_90", peers, rounds=2)
    with running(W) as fake:
        found = list(run([ENTRY], [Mask()], options))
        return found, fake.fake_launches()


def test_row_is_verified_and_timed_beside_the_devices_copy():
    (row,), launches = rows(Liar(), Queued())
    assert set(row.timings) == {OURS, COPY, "queued"}
    assert row.best == "queued"
    assert "liar" in row.wrong
    assert row.roofs[COPY] > 0 and row.roof == row.roofs[COPY]
    assert launches > 2
    assert row.cache == "of 3 sets in turns, less than twice the L2"
    assert row.queued == ("queued",)


def test_a_wrong_kernel_is_shown_as_wrong():
    with fake_driver(90):  # which runs nothing
        (row,) = run([ENTRY], [Mask()], Options("cuda:sm_90", (), 1))
    assert OURS in row.wrong and OURS not in row.timings


def test_graph_of_the_current_stream_replays_calls(monkeypatch):
    with running(W) as fake:
        (operands,) = make_sets(make_operands(W, Mask()), 1)
        tensors = [tvm_ffi.from_dlpack(array) for array in operands.arrays()]
        kernel = cuda_standin.kernel(W)
        sampler = replayed(lambda: kernel.function(*tensors))
        assert isinstance(sampler, Graph)
        assert fake.fake_last().contents.stream
        launches = fake.fake_launches()
        before = fake.fake_replayed()
        assert sampler.sample() > 0
        assert fake.fake_launches() == launches and fake.fake_replayed() > before
        monkeypatch.setattr("te_select.timing.cuda.clocks.between_events", lambda *_: 6.0)
        assert Graph(lambda: kernel.function(*tensors), 3).sample() == 2.0


def test_seconds_between_events_are_those_of_one_repeat(monkeypatch):
    call = driver.call

    def six_milliseconds(function, *args):
        call(function, *args)
        if function == "cuEventElapsedTime":
            args[0]._obj.value = 6.0

    monkeypatch.setattr("te_select.runtime.call.cuda.driver.call", six_milliseconds)
    with fake_driver(90):
        done = []
        assert clocks.between_events(done.append, 3, 4, 0) == pytest.approx(1.5e-3)
    assert done == [3, 4]


def test_roof_counts_what_a_copy_reads_and_writes(monkeypatch):
    copy = Mock(sample=lambda: 2.0)
    monkeypatch.setattr("te_select.timing.cuda.roof.probe", lambda *_: copy)
    with fake_driver(90):
        assert roof.bandwidth(1 << 20) == 1 << 19
    with fake_driver():
        assert roof.bandwidth(1 << 20) is None


@pytest.mark.parametrize("failing", [b"", b"cuStreamBeginCapture_v2"])
def test_work_that_no_graph_captures_is_timed_in_a_queue(failing):
    with running(W) as fake:
        fake.fake_fail(failing, 900)
        sampler = replayed(lambda: None)
        assert not isinstance(sampler, Graph)
        assert sampler.sample() > 0
        assert fake.fake_replayed() == 0


def test_bench_without_a_device_is_a_target_error():
    with fake_driver(), pytest.raises(TargetError, match=r"cannot be measured here: .*NVIDIA GPU"):
        list(run([ENTRY], [Mask()], Options("cuda:sm_90", ())))


def test_command_line_reports_the_device_and_absent_peers(tmp_path):
    with running(W):
        plot = tmp_path / "bench.png"
        done = cli.run("bench", *SMALL, "--json", "--plot", plot)
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert {peer.name for peer in PEERS} == set(document["absent"])
    assert "Fake GPU, sm_90" in document["machine"]["gpus"]["device 0"]
    assert document["rows"][0]["roof"]["how"] == {COPY: "cuMemcpyDtoDAsync"}
    assert plot.stat().st_size
    with running(W):
        done = cli.run("bench", *SMALL, "--peers", "none")
    assert "a copy by cuMemcpyDtoDAsync on as many bytes" in done.output


def test_steps_of_the_merged_loops_address_every_element():
    workload = Workload((3, 1, 5), (3, 4, 1), (4, 5), "float32", "multidirectional")
    pattern = access_pattern(workload)
    host = make_operands(workload, Mask())
    at = np.unravel_index(np.arange(pattern.elements), [loop.bound({}) for loop in pattern.loops])
    index = {
        letter: sum(i * step[letter] for i, step in zip(at, strides(pattern), strict=True))
        for letter in "cte"
    }
    sides = [
        array.reshape(-1)[index[letter]]
        for array, letter in zip((host.cond, host.then, host.else_), "cte", strict=True)
    ]
    want = np.where(host.cond, host.then, host.else_)
    assert np.where(*sides).tobytes() == want.tobytes()


def test_sets_are_copies_in_memory_of_their_own():
    with fake_driver(90):
        host = make_operands(W, Mask())
        sets = make_sets(host, 3)
        assert len({each.out.memory.address for each in sets}) == 3
        assert sets[2].then.numpy(host.then.dtype).tobytes() == host.then.tobytes()
