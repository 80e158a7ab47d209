"""The suite of the bench."""

import pytest

from te_select.bench.suite import BASELINES, DEFAULT, choose
from te_select.operator.access import access_pattern


def test_the_suite_covers_what_it_promises():
    assert len(DEFAULT) >= 24
    assert len({entry.name for entry in DEFAULT}) == len(DEFAULT)
    assert {len(entry.workload.out_shape) for entry in DEFAULT} >= {0, 1, 2, 3, 4, 5}
    assert {entry.workload.element.width for entry in DEFAULT} == {1, 2, 4, 8, 16}
    moved = [access_pattern(entry.workload).bytes_moved() for entry in DEFAULT]
    assert min(moved) <= 1 << 10
    assert max(moved) >= 0.99 * 2**30
    assert {f"inner-{extent}" for extent in range(2, 8)} <= {entry.name for entry in DEFAULT}
    assert all(entry.why for entry in DEFAULT)
    assert set(BASELINES) <= set(DEFAULT)


def test_a_glob_chooses_workloads():
    assert [entry.name for entry in choose(DEFAULT, "rows-[48]*")] == ["rows-4096", "rows-8"]
    with pytest.raises(ValueError, match="matches no workload; expected a glob over scalar"):
        choose(DEFAULT, "x*")
