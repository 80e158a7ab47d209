"""Which kernels there are, and the parts in which they are built."""

import itertools

from te_select.operator import family
from te_select.operator.access import access_pattern
from te_select.records.lookup import NEAR
from te_select.records.origin import ratio


def test_every_place_is_taken_once():
    places = [place for part in family.parts().values() for place in part.values()]
    assert len(places) == len(set(places)) == 5 * 7 + 4 * 24


def test_missing_kernel_names_its_part():
    for name, part in family.parts().items():
        for place in part.values():
            kind, width, number = place.replace("]", "").replace("[", " ").split()
            if kind == "rows":
                assert family.part_of_missing_kernel(40 + 27 * int(width) + int(number)) == name


def test_part_is_held_only_if_it_is_whole():
    one, other = family.parts()["w4"], family.parts()["w2_rows05"]
    everything = [*one, *other]
    assert family.held(everything) == ["w4", "w2_rows05"]
    assert family.held(everything[1:]) == ["w2_rows05"]
    assert family.members(everything[1:]) == other
    assert family.held([]) == []


def test_every_kernel_has_a_name_of_its_own():
    kernels = family.kernels()
    assert list(kernels.values()) == list(family.places(family.parts()))
    assert kernels["w4 n:cte"].out_shape == ("n",)
    rows = kernels["w4 m:cte x n:t"]
    assert (rows.cond_shape, rows.then_shape, rows.else_shape) == (("m", 1), ("m", "n"), ("m", 1))
    assert rows.dtype == "uint32"


def test_counts_have_the_names_of_their_kernels():
    counts = [0] * 175
    assert family.by_name(counts) == {}
    counts[0] = 9  # of no kernel
    counts[8 * 2 + 7], counts[40 + 27 * 2 + 9] = 5, 3
    named = family.by_name(counts)
    assert named == {"w4 n:cte": 5, "w4 m:cte x n:te": 3}
    assert family.kernels()["w4 m:cte x n:te"] in family.parts()["w4_rows09"]


def test_no_record_of_one_kernel_is_near_to_another():
    kernels = family.kernels().items()
    patterns = {name: access_pattern(family.typical(each)) for name, each in kernels}
    near = [
        names
        for names in itertools.combinations(patterns, 2)
        if (ratio(*(patterns[name] for name in names)) or 2 * NEAR) < 2 * NEAR
    ]
    assert near == [("w8 n:te", "w16 n*2:te")]  # these are one kernel
