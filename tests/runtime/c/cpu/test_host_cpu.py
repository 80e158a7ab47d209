"""What a call gives a kernel: flags and threads."""

from time import sleep

import numpy as np
from pytest import fixture, mark, raises

from tests.support import cpu_probe, python
from tests.support.machines import needs_fences

THREADS = 4


@fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("probe")
    cpu_probe.build(made)
    return made


@fixture
def probe(folder, monkeypatch):
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", str(THREADS))
    return lambda **how: cpu_probe.Probe(folder, **how)


def until(probe, expected, *bytes_):
    """Ask for a plan until it is so: calls run alone while cores have other work."""
    for _ in range(500):
        if (plan := tuple(probe.plan_of_bytes(*bytes_))) == expected:
            return
        sleep(0.01)
    assert plan == expected


OF_MACHINE = {"stream_from": -1, "bytes_per_thread": -1}
REREAD = {"bytes_per_thread": 100, "skip": -1, "reads_cond_once": False}
SERIAL = f"bytes_per_thread={1 << 60}"
FILLS = f"{SERIAL},fill_per_thread=0,fill_per_l3=0"
CAP = f"{SERIAL},stream_per_thread=1000,stream_per_l3=300,fill_per_thread=400,fill_per_l3=200"


@mark.parametrize(
    "profile, how, bytes_, expected",
    [
        # Stores past the cache begin at the bytes of out that were asked for, or never.
        ("", {"stream_from": 64}, "15 60 60 60", (1, False, False)),
        ("", {"stream_from": 64}, "16 64 64 64", (1, True, False)),
        # Threads are as many as the bytes moved are worth.
        ("", {"bytes_per_thread": 100}, "15 60 60 60", (1, False, False)),  # 195
        ("", {"bytes_per_thread": 100}, "16 64 64 64", (2, False, False)),  # 208
        ("", {"bytes_per_thread": 100}, "1000 4000 4000 4000", (4, False, False)),
        ("bytes_per_thread=6500", OF_MACHINE, "999 3996 3996 3996", (1, False, False)),
        ("bytes_per_thread=6500", OF_MACHINE, "1000 4000 4000 4000", (2, False, False)),
        # The knob or the machine says to look at cond first, in calls of several threads.
        ("skip=2", {"bytes_per_thread": 100, "skip": 0}, "1000 4 4 4000", (4, False, False)),
        ("skip=0", {"bytes_per_thread": 100, "skip": 1}, "1000 4 4 4000", (4, False, True)),
        ("skip=0", {"bytes_per_thread": 100, "skip": -1}, "1000 4 4 4000", (4, False, False)),
        ("skip=2", {"bytes_per_thread": 100, "skip": -1}, "1000 4 4 4000", (4, False, True)),
        ("skip=2", {"bytes_per_thread": 100, "skip": -1}, "1 4 4 4", (1, False, False)),
        ("skip=1", REREAD, "1000 4 4 4000", (4, False, False)),
        ("skip=2", REREAD, "1000 4 4 4000", (4, False, True)),
        # The machine decides from where stores pass its caches: by the bytes moved, or of a fill
        # by the bytes written. One value of cond reads one side.
        (CAP, OF_MACHINE, "1 500 500 798", (1, False, False)),
        (CAP, OF_MACHINE, "1 500 500 799", (1, True, False)),
        (CAP, OF_MACHINE, "1 1 1 599", (1, False, False)),
        (CAP, OF_MACHINE, "1 1 1 600", (1, True, False)),
        (FILLS, OF_MACHINE, "100 100 4 408", (1, False, False)),
        (FILLS, OF_MACHINE, "100 100 4 409", (1, True, False)),
    ],
)
def test_plan_follows_the_knobs_and_the_machine(probe, monkeypatch, profile, how, bytes_, expected):
    monkeypatch.setenv("TE_SELECT_PROFILE", profile or SERIAL)
    until(probe(**how), expected, *map(int, bytes_.split()))


def test_call_of_one_thread_inside_the_caches_is_small(probe):
    made = probe(bytes_per_thread=100, stream_from=256)
    small = []
    for n in (15, 16, 63, 64):
        made(n)
        small.append(made.seen.has("small"))
    assert small == [True, False, False, False]
    streamed = probe(stream_from=64)
    streamed(16)
    assert not streamed.seen.has("small")


@needs_fences
def test_threads_that_stored_past_the_cache_order_stores(probe):
    serial = probe(stream_from=64)
    serial(15)
    assert serial.fences.value == 0
    serial(16)
    assert serial.fences.value == 1


@needs_fences
def test_every_helper_orders_its_stores_too(tmp_path):
    """In a new process: helpers run the code of the library that starts them.

    Until none of them came too late, and did nothing.
    """
    cpu_probe.build(tmp_path)  # the process would write over the libraries that are loaded here
    code = f"""
        from pathlib import Path
        from tests.support.cpu_probe import Probe
        probe = Probe(Path({str(tmp_path)!r}), stream_from=64, bytes_per_thread=100)
        probe.seen.meet = 1
        fences = 0
        for _ in range(500):
            probe(1000)
            assert fences <= {THREADS}
            fences = probe.fences.value
            if fences == {THREADS}:
                break
        print(fences)
    """
    assert python(code, TE_SELECT_NUM_THREADS=str(THREADS)) == f"{THREADS}\n"


@mark.parametrize("side", ["then", "else_", "out"])
def test_short_runs_suffice_where_out_is_a_side(probe, monkeypatch, side):
    monkeypatch.setenv("TE_SELECT_PROFILE", "skip=1")
    made = probe(bytes_per_thread=100, skip=-1)
    cond = np.repeat(np.random.default_rng(0).random(256) < 0.5, 16)[:, None]
    arrays = {name: np.zeros(cond.shape, "f4") for name in ("then", "else_", "out")}
    made.call(cond, arrays["then"], arrays["else_"], arrays[side])
    assert made.seen.has("skip") == (side != "out")


@mark.parametrize("knob", [-1, 0, 1])
@mark.parametrize("profile", [0, 1])
def test_knob_or_machine_says_that_spans_walk_backwards(probe, monkeypatch, knob, profile):
    monkeypatch.setenv("TE_SELECT_PROFILE", f"backwards={profile}")
    made = probe(backwards=knob)
    made(1)
    assert made.seen.has("backwards") == bool(profile if knob < 0 else knob)


@mark.parametrize("profile", ["skip=1", "skip=2,stream_per_thread=1000,stream_per_l3=0"])
@mark.parametrize(
    "how",
    [
        {},
        {"bytes_per_thread": 100},
        {"bytes_per_thread": 100, "stream_from": 256, "skip": 1},
        {"bytes_per_thread": -1, "stream_from": -1, "skip": -1, "backwards": -1},
        {"bytes_per_thread": 100, "skip": -1, "reads_cond_once": False},
    ],
)
def test_plan_is_what_a_call_does(probe, monkeypatch, profile, how):
    monkeypatch.setenv("TE_SELECT_PROFILE", f"bytes_per_thread=6500,{profile}")
    made = probe(**how)
    for n in (1, 16, 64, 99, 100, 308, 999, 1000, 2500):
        for _ in range(500):  # cores may get other work between the plan and its call
            plan = made.plan(n)
            made(n)
            if made.seen.tasks == plan.threads:
                break
            sleep(0.01)
        seen = made.seen
        assert plan == (seen.tasks, seen.has("stream"), seen.has("skip")), n
    made.plan(2500)
    made(1)
    assert made.seen.tasks == 1  # the plan has left nothing behind


def test_plan_does_not_read_cond(probe, monkeypatch):
    """Whether a call looks at it may depend on its values; then it may look."""
    monkeypatch.setenv("TE_SELECT_PROFILE", "skip=1")
    made = probe(bytes_per_thread=100, skip=-1)
    assert made.plan(1 << 40)[2]
    assert made.plan(0) == (1, False, False)
    assert made._plan() == 4


@mark.parametrize("which", (1, THREADS))
def test_failure_of_one_thread_is_that_of_the_call(probe, which):
    made = probe(bytes_per_thread=100)
    made.seen.fails = which
    with raises(RuntimeError, match="the kernel failed"):
        made.on(THREADS, 1000)
    if made.seen.tasks == THREADS:  # if the call runs alone, only the first task can fail
        assert made.seen.ran == 0x01010101
    made.seen.fails = 0
    made(1)
    assert made.seen.tasks == 1
