"""Which kernels there are, and the parts in which they are built."""

from te_select.operator import family


def test_every_place_is_taken_once():
    places = [place for part in family.parts().values() for place in part.values()]
    assert len(places) == len(set(places)) == 5 * 7 + 4 * 24


def test_workloads_differ():
    workloads = [workload for part in family.parts().values() for workload in part]
    assert len(workloads) == len({workload.name for workload in workloads})


def test_the_part_for_elements_of_any_size():
    for size, part in ((1, "w1"), (3, "w1"), (6, "w2"), (12, "w4"), (8, "w8"), (16, "w16")):
        assert family.part_of_width(size) == part


def test_missing_kernel_names_its_part():
    for name, part in family.parts().items():
        for place in part.values():
            kind, width, number = place.replace("]", "").replace("[", " ").split()
            if kind == "rows":
                assert family.part_of_missing_kernel(27 * int(width) + int(number)) == name


def test_part_is_held_only_if_it_is_whole():
    one, other = family.parts()["w4"], family.parts()["w2_rows05"]
    everything = [*one, *other]
    assert family.held(everything) == ["w4", "w2_rows05"]
    assert family.held(everything[1:]) == ["w2_rows05"]
    assert family.members(everything[1:]) == other
    assert family.held([]) == []
