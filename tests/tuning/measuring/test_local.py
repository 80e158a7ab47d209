"""A worker's answers as measurements."""

from pathlib import Path

from te_select.tuning.measuring.measurer import each_measured
from te_select.tuning.task import Built, Measurement
from tests.support.tuning_candidates import candidate

BUILT = [Built(candidate(unroll=unroll), Path("a.so")) for unroll in (1, 2)]


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
