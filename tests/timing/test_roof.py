"""The probes of the roof."""

from unittest import mock

import numpy as np
from pytest import approx, mark

from te_select.timing import roof
from te_select.timing.inputs import LINE
from tests.support.clock import Clock


@mark.parametrize("name", ["copy", "select"])
@mark.parametrize("stream", [0, 1])
def test_a_probe_does_the_work_it_is_timed_for(name, stream):
    elements = 5 * LINE
    memory = roof.probe_memory(name, elements)
    for k, array in enumerate(memory[-3:]):
        array[...] = np.arange(elements) + 1000 * k
    roof.runner([memory], elements, stream, 2)(1)
    want = np.where(memory[0] != 0, *memory[1:3]) if name == "select" else memory[0]
    np.testing.assert_array_equal(memory[-1], want)


@mark.parametrize("threads, counts", [(5, {1, 5}), (1, {1})])
def test_one_thread_and_all_are_probed_with_both_stores(threads, counts, monkeypatch):
    asked = {}

    def runner(memory, _elements, stream, count):
        run = mock.Mock()
        asked[run] = ("copy" if len(memory[0]) == 2 else "select", stream, count)
        return run

    monkeypatch.setattr("te_select.timing.roof.threads", lambda: threads)
    monkeypatch.setattr("te_select.timing.roof.runner", runner)
    monkeypatch.setattr("te_select.timing.roof._repeats", lambda _run: 1)
    monkeypatch.setattr(roof, "_fastest", lambda run, _repeats: 1e-3 * asked[run][2])
    made = roof.probes(1 << 16)
    wanted = [(n, s, c) for n in ("copy", "select") for s in (0, 1) for c in sorted(counts)]
    assert [*asked.values()] == wanted
    for probe in made.values():
        assert probe.seconds == 1e-3
        assert probe.how.startswith("plain stores, 1 threads, ")


@mark.parametrize("sets, repeats", [(1, 7), (3, 1)])
def test_memory_that_is_to_be_cold_is_used_once_a_call(sets, repeats, monkeypatch):
    ran = []
    monkeypatch.setattr("te_select.timing.roof.runner", lambda *_: ran.append)
    monkeypatch.setattr("te_select.timing.roof._repeats", lambda _run: 7)
    monkeypatch.setattr("te_select.timing.roof._fastest", lambda _run, _repeats: 1e-3)
    for probe in roof.probes(1 << 16, sets).values():
        ran.clear()
        probe.call()
        assert ran == [probe.repeats] == [repeats]


def test_bytes_are_those_of_all_operands():
    """Bytes of float32: a copy moves 8, a select 13."""
    for name, width in (("copy", 8), ("select", 13)):
        memory = roof.probe_memory(name, 5 * LINE)
        assert sum(array.nbytes for array in memory) == width * 5 * LINE
        with mock.patch.object(roof, "probe_memory", wraps=roof.probe_memory) as made:
            probe = roof.probes(width * 101 * LINE - 1)[name]
        assert probe.bytes == width * 100 * LINE
        assert mock.call(name, 100 * LINE) in made.call_args_list


def test_seconds_are_those_of_one_run(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("te_select.timing.rounds.time", clock)
    ran = []

    def run(repeats):
        ran.append(repeats)
        clock.now += repeats * 3e-6

    assert roof._fastest(run, 8) == approx(3e-6)
    assert ran[0] == 8 and len(ran) > 3
    assert roof._repeats(run) == 17  # the fewest that last 50 us
    # The first is not counted, and five are; fewer after a tenth of a second.
    more = iter([0.01, 0.02, 0.01, 0.015, 0.03, 0.035, 0.001, 0.06, 0.05, 0.001])

    def uneven(_repeats):
        clock.now += next(more)

    assert roof._fastest(uneven, 2) == approx(0.005)
    assert roof._fastest(uneven, 2) == approx(0.025)


def test_bandwidth_is_that_of_the_faster_probe(monkeypatch):
    def probe(size, seconds):
        return roof.Probe(lambda: None, 1, size, "", seconds)

    made = {"copy": probe(800, 2e-9), "select": probe(1300, 4e-9)}
    monkeypatch.setattr("te_select.timing.roof.probes", lambda _moved: made)
    assert roof.bandwidth(1) == approx(400e9)
