"""How far patterns lie apart, and the words of a record's origin."""

import re

import pytest

from te_select import Workload
from te_select.operator.access import AccessPattern, Loop, access_pattern
from te_select.records.origin import explain, outcome, ratio
from tests.support.tuning_records import flat, make


def pattern(key):
    """The pattern of int dims that has this key."""
    width, *loops = key.split("_")
    found = [re.fullmatch(r"(\d+)(\w+)", loop) for loop in loops]
    moving = [[letter in loop[2] for letter in "cte"] for loop in found]
    nest = [Loop((i,), (int(one[1]),), *moving[i]) for i, one in enumerate(found)]
    return AccessPattern(tuple(nest), int(width[1:]))


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        ("w4_8ct_512t", "w4_8ct_512t", 1.0),
        ("w4_8ct_512t", "w4_24ct_512t", 3.0),
        ("w4_24ct_512t", "w4_8ct_1024t", 6.0),  # of both loops, whichever is larger
        ("w4_8ct_512t", "w4_16ct_1024t", 4.0),
        ("w4_8ct_512t", "w8_8ct_512t", None),
        ("w4_8ct_512t", "w4_8ct_512te", None),
        ("w4_8ct_512t", "w4_4096cte", None),
        ("w4_8ct_0t", "w4_8ct_512t", None),
    ],
)
def test_patterns_are_apart_by_the_product_of_all_loops(one, other, factor):
    patterns = pattern(one), pattern(other)
    assert ratio(*patterns) == ratio(*reversed(patterns)) == factor


def test_named_extent_is_near_to_every_size():
    named = access_pattern(Workload(("n", 1), ("n", 512), ()))
    assert ratio(named, pattern("w4_8ct_1024t")) == 2.0


@pytest.mark.parametrize(
    ("default", "said", "words"),
    [
        (2e-3, {}, "2.00x the speed of the default, the best of 9 configs"),
        (1e-3, {}, "the default was the best of 9 configs"),
        (1e-3, {"cond": "a", "sizes": "n=1:2"},
         "the default was the best of 9 configs (cond a; sizes n=1:2)"),
        (1e-3, {"unsure": "noise"}, "unsure: noise"),
    ],
)  # fmt: skip
def test_words_say_what_a_session_has_found(default, said, words):
    assert outcome(make(flat(8), default_seconds=default, trials=9, **said)) == words


def test_nearest_record_is_explained_by_distance_and_size():
    workload = Workload((8, 1), (8, 512), ())
    assert explain("znver5", workload, 4.0, "found") == (
        "tuned for znver5 with the same loops and element width, 4 times apart in size (4,096 "
        "elements): found"
    )
    named = Workload(("n", 1), ("n", 512), ())
    assert explain("znver5", named, 1.0, "") == (
        "tuned for znver5 with the same loops and element width (sizes known at call time)"
    )


def test_own_record_is_explained_by_its_target():
    workload = Workload((8,), (8,), ())
    assert explain("znver5", workload, None, "") == "this access pattern was tuned for znver5"
