"""Every attack runs for a moment and finds nothing, and finds a fault that was planted for it."""

import time

import numpy as np
import pytest

import te_select
from soak import (
    cache,
    damage,
    driver,
    forks,
    fuzz,
    kills,
    logs,
    races,
    readers,
    sanitized,
    threads,
    timers,
    where,
)
from soak.found import Found
from te_select.runtime.artifact import stored
from tests.support.runtime_standin import kernel as standin

pytestmark = pytest.mark.slow


@pytest.fixture
def found():
    return Found()


CLEAN = [  # an attack, its seed and options, and what it counts then
    *((races, seed, {"pairs": 4}, {"pairs of exports": 4}) for seed in (0, 1)),
    (kills, 0, {"kills": 6}, 6),
    (damage, 0, {"damages": 12}, {}),
    (logs, 0, {"damages": 12}, {}),
    (readers, 0, {"files": 60}, {}),
    (timers, 0, {"interrupts": 300}, {}),
    (forks, 0, {"forks": 3}, {}),
    (fuzz, 0, {"kernels": 3, "calls": 40}, {}),
    (sanitized, 2, {"calls": 3000, "kernels": 4}, 3000),
    (threads, 1, {"calls": 600}, {"calls under ThreadSanitizer": 600}),
    (where, 0, {"calls": 60}, {"calls": 60}),
    (cache, 0, {"starts": 3, "kills": 2}, {"entries that were flipped": 50}),
]


@pytest.mark.parametrize(
    ("attack", "seed", "options", "counts"), CLEAN, ids=lambda each: getattr(each, "__name__", "")
)
def test_attack_finds_nothing(found, monkeypatch, attack, seed, options, counts):
    for setting in ("TE_SELECT_NUM_THREADS", "TE_SELECT_PROFILE"):
        monkeypatch.setenv(setting, "")  # monkeypatch also restores what fuzz sets
    attack.attack(seed, found, **options)
    assert not found.failures and found.counts
    if isinstance(counts, int):
        assert sum(found.counts.values()) == counts
    else:
        assert counts.items() <= found.counts.items()


# ---- files --------------------------------------------------------------------------------------


def test_races_find_an_export_in_two_steps(found, monkeypatch):
    monkeypatch.setattr(races, "_export", races._truncate_and_copy)
    races.attack(1, found, pairs=40)
    assert any("exports" in failure for failure in found.failures)


def test_kills_find_an_export_in_two_steps(found, monkeypatch):
    def write(path, pair):
        path.write_bytes(pair[0].image[:1000])
        time.sleep(0.05)
        stored.write(pair[0], path)

    monkeypatch.setattr(kills, "_write", write)
    kills.attack(0, found, kills=3)
    assert any("the artifact cannot be loaded" in failure for failure in found.failures)


# ---- processes ----------------------------------------------------------------------------------


# ---- kernels ------------------------------------------------------------------------------------


WORKLOAD = te_select.Workload((40,), (40,), (40,))


class Planted:
    """A kernel that is right, and then changes a byte."""

    def __init__(self, spoil):
        self.workload = WORKLOAD
        self.function = self._function
        self._spoil = spoil

    def __call__(self, *inputs, out=None):
        result = standin(WORKLOAD)(*inputs, out=out)
        self._spoil(result)
        return result

    def _function(self, *tensors):
        standin(WORKLOAD).function(*tensors)
        self._spoil(np.from_dlpack(tensors[-1]))


def flip_the_last_element(out):
    out.view(np.uint32)[-1] ^= 1 << 22


def test_fuzz_finds_one_flipped_bit(found):
    fuzz.check(Planted(flip_the_last_element), "planted", np.random.default_rng(0), found, 20)
    assert "out[39] is 0x" in found.failures[0]


# ---- the C half ---------------------------------------------------------------------------------


def edited(name, old, new, folder):
    """The C half with one file edited."""
    (original,) = (path for path in driver.SOURCES if path.name == name)
    text = original.read_text()
    assert text.count(old) == 1
    copy = folder / name
    copy.write_text(text.replace(old, new))
    return [copy if path == original else path for path in driver.SOURCES]


@pytest.mark.parametrize(
    ("old", "new", "report"),
    [
        ("if (!t->strides) return 0;", "return 0;", "it took what is wrong"),
        ("int32_t i = t->ndim - 1;", "int32_t i = t->ndim;", "heap-buffer-overflow"),
        ("if (!(address % (uint64_t)width)) return 0;", "return 0;", "it took what is wrong"),
    ],
)
def test_sanitized_finds_planted_faults(found, tmp_path, old, new, report):
    sources = edited("host.c", old, new, tmp_path)
    sanitized.attack(2, found, calls=20_000, kernels=4, sources=sources)
    assert report in found.failures[0]


def test_threads_find_a_data_race(found, tmp_path):
    atomic = "atomic_load_explicit(&p->threads, memory_order_relaxed)"
    plain = "*(int32_t*)&p->threads"
    threads.attack(1, found, calls=20_000, sources=edited("pool.c", atomic, plain, tmp_path))
    assert "ThreadSanitizer: data race" in found.failures[0]


# ---- where() ------------------------------------------------------------------------------------


def test_where_finds_a_wrong_bit(found, monkeypatch):
    select = where.te_select.where

    def wrong(*arguments, **options):
        result = select(*arguments, **options)
        if result.dtype == "f4" and result.size > 100:
            result.view("u4").flat[50] ^= 1
        return result

    monkeypatch.setattr(where.te_select, "where", wrong)
    where.attack(0, found, calls=300)
    assert any("bits differ" in failure for failure in found.failures)
