"""How long a call takes: samples, and how many of them."""

import gc

import pytest

from te_select.timing import rounds, samples
from te_select.timing.samples import enough, time_calls
from tests.support.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (samples, rounds):
        monkeypatch.setattr(module, "time", made)
    return made


@pytest.mark.parametrize("milliseconds", [1e-4, 1e-3, 0.1, 1, 11, 400])
def test_sample_is_the_time_of_one_call(clock, milliseconds):
    found = time_calls(clock.call("a", milliseconds))
    assert found == pytest.approx([milliseconds / 1e3] * len(found))


@pytest.mark.parametrize(
    ("milliseconds", "count"), [(0.17, 89), (1, 30), (11, 7), (200, 5), (400, 3), (2000, 3)]
)
def test_samples_are_as_many_as_make_the_median_sure(clock, milliseconds, count):
    assert len(time_calls(clock.call("a", milliseconds))) == count


def test_short_calls_are_bundled_and_long_ones_single(clock):
    found = time_calls(clock.call("short", 1e-3))
    assert len(clock.calls) > 200 * len(found)
    clock.calls.clear()
    found = time_calls(clock.call("long", 20))
    assert len(clock.calls) == len(found) + 1  # one to warm up


def test_what_is_cold_is_not_counted(clock):
    def call() -> None:
        clock.now += 1e-3 if clock.now > 5e-3 else 4e-3

    assert max(time_calls(call)) == pytest.approx(1e-3)


def test_three_samples_do_where_one_takes_long():
    assert not enough(2, 5.0)
    assert enough(3, 5.0)
    assert not enough(6, 0.9)
    assert enough(7, 0.9)
    assert not enough(7, 0.02)


def test_garbage_is_not_collected_meanwhile(clock):
    seen = []
    time_calls(lambda: (seen.append(gc.isenabled()), clock.call("a", 11)()))
    assert seen[-1] is False
    assert gc.isenabled()
