"""What a session tunes: sizes, cond, and the candidates of a config."""

import dataclasses

import pytest

from te_select import ArgumentError, Workload
from te_select.records.sizes import points, representative
from te_select.tuning.task import Task
from tests.support import shapes
from tests.support.tuning import default_of

TARGET = "x86-64-v4"
NAMED = Workload(*shapes("batch,1,512 batch,12,512 ()"))
RANGES = (("batch", 1, 64),)


def test_range_is_tuned_at_both_ends_and_in_the_middle():
    assert [each.cond_shape[0] for each in points(NAMED, RANGES)] == [2, 11, 64]
    assert [each.cond_shape[0] for each in points(NAMED, (("batch", 7, 7),))] == [7]
    assert [each.cond_shape[0] for each in points(NAMED, (("batch", 2, 4),))] == [2, 3, 4]
    assert points(NAMED) == [representative(NAMED)]


def test_every_name_needs_a_range_or_none_does():
    two = Workload(*shapes("a,1,9 a,b,9 ()"))
    with pytest.raises(ArgumentError, match="sizes of b as well"):
        points(two, (("a", 1, 4),))


def test_candidates_of_a_range_are_one_library_at_each_size():
    task = Task(NAMED, TARGET, ranges=RANGES)
    candidates = task.candidates(default_of(task.kernel_workload))
    assert {candidate.workload for candidate in candidates} == {NAMED}
    assert [candidate.problem[0] for candidate in candidates] == task.points
    assert len({candidate.code for candidate in candidates}) == 1


def test_candidate_of_one_size_is_built_for_it():
    task = Task(NAMED, TARGET)
    (candidate,) = task.candidates(default_of(task.sized))
    assert candidate.workload == candidate.problem[0] == representative(NAMED)
    assert dict(candidate.config) == dataclasses.asdict(default_of(task.sized))
