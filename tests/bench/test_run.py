"""The bench: peers, what a run ranks, which contestants meet again, and what its reports say."""

import json

import numpy as np
from pytest import approx, mark

from te_select.bench import stage
from te_select.bench.peers import NumPy, Peer, choose_peers
from te_select.bench.row import COPY, OURS, SELECT, Options
from te_select.bench.run import CLOSE, DUEL_ROUNDS, Contest, _measure, decided, run
from te_select.bench.stage import Stage, difference
from te_select.timing.inputs import Mask, make_operands
from te_select.timing.roof import Probe
from te_select.timing.rounds import PAUSE, Timing
from tests.support import cli
from tests.support.bench_rows import ENTRY, row
from tests.support.clock import Clock

SMALL = [*cli.FLAGS, "--rounds", "1"]


def bench(*args):
    return cli.run("bench", *args)


class Liar(Peer):
    name = "liar"

    def prepare(self, workload, sets):
        return [lambda: None for _ in sets]


class Missing(Peer):
    name = "missing"
    modules = ("no_such_module",)
    install = "no-such-package"

    prepare = None  # it is not called


class Picky(Peer):
    name = "picky"

    def prepare(self, workload, sets):
        raise ValueError("has no such type")


def test_a_wrong_result_is_shown_and_not_ranked():
    """Bytes that a contestant does not write are found, even after a right contestant."""
    peers = [*choose_peers("numpy-copyto"), Liar(), Picky()]
    (row,) = run([ENTRY], [Mask()], Options(peers=peers))
    assert row.wrong.keys() == {"liar"} and "0xa5a5a5a5" in row.wrong["liar"]
    assert row.unsupported == {"picky": "has no such type"}
    assert set(row.ranked) == {row.best} == {"numpy-copyto"}
    assert row.roof


@mark.parametrize("cold", [False, True])
def test_cold_caches_are_measured_too(cold):
    peers = choose_peers("numpy")
    (row,) = run([ENTRY], [Mask(10, 2)], Options("native", peers, 2, cold))
    assert not row.wrong
    assert row.rounds == 2
    assert set(row.timings) == {OURS, COPY, SELECT, "numpy"}
    assert (row.cache == "hot") != cold


def test_probe_is_timed_by_the_run_with_its_own_bytes(monkeypatch):
    def probe(size, repeats):
        return Probe(lambda: None, repeats, size, "plain stores", 1.0)

    made = {"copy": probe(100, 4), "select": probe(130, 1)}
    monkeypatch.setattr("te_select.bench.stage.roof.probes", lambda _moved, _sets: made)
    pauses = []

    def turns(calls, rounds, pause):
        pauses.append(pause)
        return dict.fromkeys(calls, Timing((2.0,) * rounds))

    monkeypatch.setattr("te_select.bench.stage.take_turns", turns)
    (row,) = run([ENTRY], [Mask()], Options(rounds=3))
    assert row.timings[COPY].seconds == (0.5,) * 3
    assert row.roofs == {COPY: 200, SELECT: 65}
    assert (row.how[COPY], row.moved) == ("plain stores", 4 + 80 + 4 + 80)
    assert row.rate(OURS) == row.moved / 2
    assert set(pauses) == {PAUSE}


@mark.parametrize("cache, moved", [(1 << 20, 1 << 18), (1 << 25, 1 << 20), (1 << 20, 1 << 22)])
def test_cold_operands_are_more_than_twice_the_largest_cache(cache, moved, monkeypatch):
    monkeypatch.setattr("te_select.bench.stage.last_level_cache", lambda: cache)
    sets, said = stage.Stage("native").count(moved, True)
    assert said == "cold"
    assert sets * moved > 2 * cache
    assert stage.Stage("native").count(moved, False) == (1, "hot")
    monkeypatch.setattr("te_select.bench.stage.last_level_cache", lambda: 1 << 30)
    sets, said = stage.Stage("native").count(1 << 10, True)
    assert sets == stage._MOST_SETS
    assert said.startswith(f"of {sets} sets of operands in turns, less than twice")


def test_slow_contestants_have_fewer_rounds(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("te_select.bench.stage.time", clock)
    calls = [{"slow": clock.call("slow", milliseconds)} for milliseconds in (1, 500, 9000)]
    assert [*map(Stage("native").rounds, calls)] == [15, 7, 5]


def test_bench_reports_to_people_and_machines(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.bench.peers.PEERS", (NumPy, Missing, Liar))
    plot = tmp_path / "x.png"
    result = bench(*SMALL, "--density", "0,100", "--plot", plot)
    assert result.exit_code == 0, result.output
    for shown in ("absent: missing: No module", "pip install no-such-package", "WRONG: "):
        assert shown in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    rows = cli.run_json("bench", *SMALL, "--density", "0,100")["rows"]
    assert [set(row["seconds"]) for row in rows] == 2 * [{OURS, COPY, SELECT, "numpy"}]
    assert [set(row["wrong"]) for row in rows] == 2 * [{"liar"}]


def test_an_interrupt_reports_what_was_measured(monkeypatch):
    measure = _measure

    def interrupt(place, entry, mask, options):
        if mask.density > 0:
            raise KeyboardInterrupt
        return measure(place, entry, mask, options)

    monkeypatch.setattr("te_select.bench.run._measure", interrupt)
    result = bench(*SMALL, "--peers", "none", "--density", "0,50", "--json")
    assert result.exit_code == 130
    document = json.loads(result.stdout)
    assert document["interrupted"]
    assert len(document["rows"]) == 1


@mark.parametrize("wrong, code", [(OURS, 1), ("numpy", 0)])
def test_bench_fails_if_a_kernel_of_ours_is_wrong(wrong, code, monkeypatch):
    found = row({OURS: 1e-3}, wrong={wrong: "out[0] is 0x1"})
    monkeypatch.setattr("te_select.bench.run._measure", lambda *_: found)
    assert bench(*SMALL, "--peers", "none").exit_code == code


@mark.parametrize(
    "args, message",
    [
        (["--suite", "x"], "--suite 'x' is not known; expected one of default, baselines"),
        (["--only", "x"], "--only 'x' matches no workload; expected a glob over"),
        ([*SMALL, "--only", "x"], "and --model is given; expected one"),
        (["--only", "scalar", "--size", "n=8"], "--size has no meaning beside a suite"),
        ([*SMALL, "--density", "200"], "--density '200' is no list of numbers from 0 to 100"),
        ([*SMALL, "--density", "nan"], "is no list of numbers from 0 to 100"),
        ([*SMALL, "--block", "0"], "is no list of numbers from 1 to inf"),
        ([*SMALL, "--peers", "x"], "--peers 'x' names no peer"),
        ([*SMALL, "--plot", "/proc/x.png"], "/proc/x.png cannot be written: No such file"),
        ([*SMALL, "--plot", "x.bmp"], "--plot x.bmp ends in none of .png, .svg, .pdf"),
        (["--cond", "n", "--then", "n", "--else", ""], "--size n=8"),
        (["--cond", "n", "--then", "m,n", "--else", "", "--size", "n=1:9"], "the dims m, n of "),
    ],
)
def test_bad_usage_says_what_is_accepted(args, message):
    assert message in cli.refused("bench", *args)


SETS = [make_operands(ENTRY.workload, Mask(), seed) for seed in range(2)]


def contest(**methods):
    """A contest on a stage with these methods, which finds every result right."""
    made = Stage("native")
    for name, method in ({"check": lambda *_: ""} | methods).items():
        setattr(made, name, method)
    return Contest(SETS, made)


def test_kernel_of_ours_that_cannot_run_is_wrong_and_no_gap():
    def fails(*_args):
        raise ValueError("the kernel failed")

    made = contest(calls=fails)
    made.add_ours(ENTRY.workload, Options())
    assert made.wrong == {OURS: "the kernel failed"}
    assert made.unsupported == made.contestants == {}


def test_calls_of_several_sets_take_turns():
    seen = []
    made = contest()
    calls = [lambda: seen.append(0), lambda: seen.append(1)]
    made.add("peer", lambda: calls, lambda *_: SETS[0].out)
    for _ in range(3):
        made.contestants["peer"]()
    assert seen == [0, 1, 0]


def test_difference_is_of_bits_type_and_shape():
    operands = SETS[0]
    right = np.where(operands.cond, operands.then, operands.else_)
    assert difference(right, operands) == ""
    wrong = right.copy()
    wrong.view("u4")[2, 3] ^= 1
    assert difference(wrong, operands).startswith("out[2,3] is 0x")
    assert difference(right.astype("f8"), operands) == "is float64 [4, 5], expected float32 [4, 5]"
    assert "[5, 4], expected float32 [4, 5]" in difference(right.T, operands)


def test_close_calls_are_decided_until_the_best_was_met():
    times = {OURS: 1.0, "near": 1.01, "next": 1.02, "far": 2.0}
    met = []

    def turns(contestants, rounds):
        met.append((set(contestants), rounds))
        slower = {name: Timing((2 * each,)) for name, each in contestants.items()}
        return slower | {OURS: Timing((1.9,))}

    found = decided(row(times), times, turns)
    assert met == [({OURS, "near"}, DUEL_ROUNDS), ({OURS, "next"}, DUEL_ROUNDS)]
    assert found.duels == approx({"near": 2.02 / 1.9, "next": 2.04 / 1.9})
    assert found.best == "near"


@mark.parametrize(
    "times, rounds",
    [
        ({OURS: 1.0, "peer": 1 + 1.01 * CLOSE}, 15),
        ({OURS: 1.0, "peer": 1 - 1.01 * CLOSE}, 15),
        ({OURS: 1.0, "peer": 1.0}, DUEL_ROUNDS),
        ({"peer": 1.0}, 15),
        ({OURS: 1.0}, 15),
    ],
)
def test_what_is_clear_is_not_met_again(times, rounds):
    turns = None  # it is not called
    assert decided(row(times, rounds=rounds), times, turns).duels == {}
