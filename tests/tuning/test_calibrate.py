"""A measured profile: thresholds from ratios, and the file that libraries read."""

from pytest import approx, fixture, mark

from te_select.backends.cpu.environment import profile_here
from te_select.runtime.call.cpu.profile import ADVICE, DECISIONS, NEVER, Profile
from te_select.timing.rounds import Timing
from te_select.tuning import calibrate as module
from te_select.tuning.calibrate import SECOND, Measured, keep, measure

MB = 1 << 20
SIZES = [MB << k for k in range(7)]
FLAT_NOISE = (0.98, 1.02, 0.99, 1.01, 1.03, 0.97, 1.0)


def past(first):
    """The ratios of a machine on which the second way is faster from a size in MB on."""
    return tuple(0.8 if size < first * MB else 1.25 for size in SIZES)


@mark.parametrize(
    "ratios, current, found, most",
    [
        (past(4), 3 * MB, 3 * MB, 3),  # nothing is against it
        (FLAT_NOISE, 12 * MB, 12 * MB, 3),
        (past(4), 100 * MB, 2 * MB * 2**0.5, 4),
        (past(64), 3 * MB, 32 * MB * 2**0.5, 5),
        ((0.5, 1.1, 0.87, 0.86, 0.86, 0.86, 1.65), 1.5 * MB, 40 * MB, 6),
        (past(1), 20 * MB, MB, 5),
        (past(1), 0, 0, 3),
        (past(128), 5 * MB, NEVER, 5),
        (past(128), 500 * MB, 500 * MB, 1),  # no size was tried that is as large
    ],
)
def test_threshold_is_found_with_few_sizes(ratios, current, found, most):
    asked = []

    def ratio(size):
        asked.append(size)
        return ratios[SIZES.index(size)]

    assert module.crossover(ratio, SIZES, current) == approx(found, rel=0.1)
    assert len(asked) == len(set(asked)) <= most


@mark.parametrize(
    "one, several, threads, caches, found",
    [
        (2 * MB, 4 * MB, 2, 1, (2 * MB, 0)),  # each thread has a cache of its own
        (32 * MB, 32 * MB, 2, 1, (0, 32 * MB)),  # they share one
        (3 * MB, 5 * MB, 2, 1, (2 * MB, MB)),
        (32 * MB, 64 * MB, 16, 2, (0, 32 * MB)),
        (8 * MB, 4 * MB, 2, 1, (0, 4 * MB)),  # noise
        (MB, 4 * MB, 2, 1, (2 * MB, 0)),
        (5 * MB, 5 * MB, 1, 1, (0, 5 * MB)),
        (NEVER, 4 * MB, 2, 1, (0, 4 * MB)),
        (4 * MB, NEVER, 2, 1, (NEVER, 0)),
    ],
)
def test_thresholds_are_divided_among_threads_and_caches(one, several, threads, caches, found):
    machine = {"threads": threads, "threads_per_l3": -(-threads // caches)}
    per_thread, per_l3 = found
    expected = {"stream_per_thread": per_thread, "stream_per_l3": per_l3}
    assert module.shares("stream", one, several, machine) == expected


@fixture
def home(monkeypatch, tmp_path):
    """A home of its own, two threads, and sizes so small that the figures mean nothing."""
    monkeypatch.setattr("te_select.tuning.calibrate.SIZES", (1 << 12, 1 << 13))
    monkeypatch.setattr("te_select.tuning.calibrate.THREAD_SIZES", (1 << 12,))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TE_SELECT_NUM_THREADS", "2")
    monkeypatch.delenv("TE_SELECT_PROFILE", raising=False)


def test_measured_decisions_are_such_as_a_library_takes(home, monkeypatch):
    monkeypatch.setenv("TE_SELECT_PROFILE", "stream_per_thread=4096,stream_per_l3=0")
    steps = []
    found = measure(profile_here(), lambda *step: steps.append(step), 2)
    assert profile_here().origin == "TE_SELECT_PROFILE"  # as it was before
    monkeypatch.delenv("TE_SELECT_PROFILE")
    assert steps == [(k, module.STEPS) for k in range(module.STEPS + 1)]
    assert set(found.decisions) == set(DECISIONS)
    assert all(each.ratio > 0 for each in found.comparisons)
    assert {each.threads for each in found.comparisons} == {0, 1, 2}
    keep(found, profile_here(), 0.1)
    taken = profile_here()
    assert (taken.origin, taken.problem, taken.advice) == ("measured by the user", "", {})
    assert taken.decisions == found.decisions


class Ratios:
    """A bench that measures what the test says: by name, the MB from which on it is faster."""

    def __init__(self, random=1.0, blocks=1.0, walk=1.0, second=0.0, passes=()):
        self.random = random
        self.blocks = blocks
        self.walk = walk
        self.second = second
        self.passes = {name: iter(passes) for name in (*module.COMPARED, module.SECOND)}
        self.seen = []

    def threshold(self, name, current):
        if name == module.SECOND and self.second:
            return module.crossover(self.second_thread, module.THREAD_SIZES, current)
        return next(self.passes[name], {}).get(name, current)

    def second_thread(self, moved):
        return 2.0 if moved > self.second else 0.5

    def skipping(self):
        return [1.0, self.random, 2.0, self.blocks]

    def backwards(self):
        return self.walk


@fixture
def decided(monkeypatch):
    """The decisions that follow from ratios, on a machine with two threads."""
    figures = (2 * MB, MB, 8 * MB, 0, 50, 1 << 18, 0, 1)
    decisions = dict(zip(DECISIONS, figures, strict=True))
    machine = {"threads": 2, "threads_per_l3": 2}
    past = {"stores_past_the_cache": 5 * MB, "fills_past_the_cache": 16 * MB}
    current = Profile(machine, "", decisions, "", "", False, past)

    def decide(**ratios):
        monkeypatch.setattr(module, "Bench", lambda _threads, _rounds: Ratios(**ratios))
        found = measure(current)
        changed = found.decisions.items() - decisions.items()
        return found.decisions | {"unsure": found.unsure, "changed": dict(changed)}

    return decide


@mark.parametrize(
    "random, blocks, skip",
    [(0.96, 1.02, 0), (0.96, 1.04, 1), (0.98, 1.0, 2)],
)
def test_cond_is_looked_at_first_unless_it_costs(decided, random, blocks, skip):
    assert decided(random=random, blocks=blocks)["skip"] == skip


@mark.parametrize("walk, backwards", [(0.96, 0), (0.98, 1), (1.02, 1), (1.1, 1)])
def test_walk_backwards_stays_unless_it_clearly_wins_or_loses(decided, walk, backwards):
    assert decided(walk=walk)["backwards"] == backwards


@mark.parametrize(
    "second, threshold",
    [(400_000, 1 << 18), (MB, MB * 2**0.5 / 2), (1, 1 << 14), (8 * MB, NEVER // 2)],
)
def test_threshold_of_the_second_thread_is_shared_by_two(decided, second, threshold):
    assert decided(second=second)["bytes_per_thread"] == approx(threshold, rel=0.01)


def test_profile_stays_where_nothing_is_against_it(decided):
    found = decided(random=0.9)
    assert (found["changed"], found["unsure"]) == ({}, {})


@mark.parametrize(
    "passes, changed, unsure",
    [
        ((*({"stream": k * MB} for k in (9, 4, 1)),), {}, {"stream": (4 * MB, 9 * MB)}),
        ((*({"one thread": k * MB} for k in (9, 1, 30)),), {}, {"stream": (9 * MB, 30 * MB)}),
        (({"one thread": 4 * MB, "stream": 6 * MB},) * 2, {"stream_per_l3": 2 * MB}, {}),
        (({"fill": 20 * MB},) * 2, {"fill_per_thread": 10 * MB}, {}),
        ((*({"fill": first} for first in (20 * MB, NEVER, MB)),), {}, {"fill": (MB, 20 * MB)}),
        # Calls that read one side: late ones are counted by their output, as fills are.
        (({"rows": 46 * MB},) * 2, {"fill_reads": 150, "fill_per_thread": 23 * MB}, {}),
        (({"rows": 4 * MB},) * 2, {"fill_reads": 150}, {}),
        ((*({"rows": k * MB} for k in (46, 3, 900)),), {}, {"rows": (3 * MB, 46 * MB)}),
        ((*({SECOND: first} for first in (NEVER, MB, MB)),), {"bytes_per_thread": MB // 2}, {}),
        ((*({SECOND: first} for first in (NEVER, MB, 9)),), {}, {SECOND: (9, MB)}),
    ],
)
def test_threshold_of_which_no_two_of_three_passes_agree_stays(decided, passes, changed, unsure):
    found = decided(random=0.9, passes=passes)
    assert (found["changed"], found["unsure"]) == (changed, unsure)


@fixture
def bench(monkeypatch, home):
    """A bench whose second way takes half of the time of the first."""
    made = module.Bench(2, 2)
    calls = []

    def call(workload, operands, decisions):
        calls.append((workload, operands, decisions))
        return len(calls)

    def take(contestants, _rounds, samples):
        assert samples == module.SAMPLES
        return {name: Timing((2.0 / (1 + int(name)),)) for name in contestants}

    monkeypatch.setattr(made, "call", call)
    monkeypatch.setattr("te_select.tuning.calibrate.take_turns", take)
    return made, calls


@mark.parametrize(
    "name, moved, side",
    [("stream", module.BYTES_AN_ELEMENT / 4, (1024,)), ("fill", 1, ()), ("rows", 1, (21, 48))],
)
def test_stores_past_the_cache_are_compared_at_bytes_or_out(bench, name, moved, side):
    made, calls = bench
    assert made.threshold(name, 1 << 40) == 4096 * moved
    assert [(row.threads, row.bytes, row.ratio) for row in made.seen] == [
        (2, moved * size, 2.0) for size in (8192, 4096)
    ]
    (_, operands, plain), (_, _, streams) = calls[2:]
    assert operands.then.shape == side
    assert plain.keys() == streams.keys()
    differ = {key: (plain[key], streams[key]) for key in plain if plain[key] != streams[key]}
    assert differ == dict.fromkeys(module.PAST, (NEVER, 0))


WAYS = [("skip", 0, 2), ("backwards", 0, 1), ("bytes_per_thread", NEVER, 524_160)]


def test_other_choices_have_the_second_way_as_numerator(bench):
    made, calls = bench
    assert [*made.skipping(), made.backwards(), made.second_thread(MB)] == [2.0] * 6
    for (*_, first), (*_, second) in zip(calls[::2], calls[1::2], strict=True):
        (key,) = {key for key in first if first[key] != second[key]}
        assert (key, first[key], second[key]) in WAYS


@mark.parametrize(
    "origin, file, busy, said",
    [
        ("measured: znver5", "file", 0.0, ""),
        ("measured by the user", "file", 0.0, ""),
        ("reasoned: amd", "", 0.0, "was not measured: there is no folder"),
        ("reasoned: amd", "file", 0.2, "was not measured: 0.2 cores are busy"),
        ("reasoned: amd", "file", 0.15, "is kept in "),
    ],
)
def test_profile_is_measured_if_it_is_only_reasoned(
    monkeypatch, tmp_path, origin, file, busy, said
):
    path = str(tmp_path / file) if file else ""
    current = Profile({}, origin, {}, path, "", False, {})
    monkeypatch.setattr("te_select.tuning.calibrate.profile_here", lambda: current)
    monkeypatch.setattr("te_select.tuning.calibrate.busy_cores", lambda: busy)
    monkeypatch.setattr(module, "measure", lambda _: Measured(dict.fromkeys(DECISIONS, 1), ()))
    line = module.measure_if_reasoned()
    assert said in line and bool(said) == bool(line)
    assert "\n" not in line
    assert (tmp_path / "file").exists() == ("is kept" in said)
    assert current.advice == ({"advice": ADVICE} if "reasoned" in origin else {})
