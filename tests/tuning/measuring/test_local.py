"""A worker's answers as measurements, and when a worker must be replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from te_select import Workload
from te_select.tuning.measuring.candidate import Built, Measurement
from te_select.tuning.measuring.local import each_measured, is_clean, prepare_seconds
from tests.support.tuning_candidates import W, candidate

BUILT = [Built(candidate(unroll=unroll), Path("a.so")) for unroll in (1, 2)]


@pytest.mark.parametrize(
    ("answer", "clean"),
    [
        ({}, True),
        ({"seconds": [1.0]}, True),
        ({"failure": "it crashed"}, False),
        ({"results": [{"seconds": [1.0]}, {"seconds": [2.0]}]}, True),
        ({"results": [{"seconds": [1.0]}, {"failure": "computed wrong bits"}]}, False),
    ],
)
def test_wrong_candidate_may_have_written_anywhere(answer, clean):
    assert is_clean(answer) is clean


def test_each_library_gets_its_own_answer():
    results = [{"seconds": [1.0, 2.0]}, {"failure": "computed wrong bits"}]
    assert each_measured(BUILT, {"results": results}) == [
        Measurement(BUILT[0].candidate, (1.0, 2.0), None),
        Measurement(BUILT[1].candidate, None, "computed wrong bits"),
    ]


def test_failure_of_the_whole_is_that_of_each():
    found = each_measured(BUILT, {"failure": "the run crashed"})
    assert [each.candidate for each in found] == [each.candidate for each in BUILT]
    assert {(each.seconds, each.failure) for each in found} == {(None, "the run crashed")}


def test_large_operands_are_waited_for_longer():
    large = Workload((1 << 30,), (1 << 30,), ())
    assert prepare_seconds(W) < prepare_seconds(large)
    assert prepare_seconds(large) > 9 * (1 << 30) / 20e6
