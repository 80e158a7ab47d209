"""The list of stages is what NumPy promotes, and what is made boolean."""

import numpy as np

from te_select.operator.stages import BITS, NUMBERS, stages


def test_promotions_of_numpy_have_a_stage_each():
    found = {(each.source, each.target) for each in stages() if each.target != "bool"}
    for source in NUMBERS:
        for other in NUMBERS:
            target = np.promote_types(source, other).name
            assert (target == source) != ((source, target) in found)
    assert len(found) == 66


def test_all_numbers_and_bits_have_a_stage_to_bool():
    found = [each.source for each in stages() if each.target == "bool"]
    assert found == [*NUMBERS[1:], BITS]


def test_stages_have_a_name_and_a_place_each():
    for fact in ("name", "place"):
        assert len({getattr(each, fact) for each in stages()}) == len(stages()) == 80
    places = {each.name: each.place for each in stages()}
    assert places["bits to bool"] == "of[14][0]"
    assert places["bool to int8"] == "of[0][1]"
    assert places["float16 to float32"] == "of[9][10]"
