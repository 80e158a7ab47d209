"""The sizes by which records of workloads with named dims are found."""

from pytest import mark

from te_select import Workload
from te_select.operator.access import access_pattern
from te_select.records.sizes import REPRESENTATIVE_BYTES, representative

SHAPES = [(shape,) * 3 for shape in (("n",), ("n", 3), ("n", "m", 7), ("a", "b", "c", "d"))]


@mark.parametrize("shapes", [*SHAPES, (("b", 1, "s", "s"), ("b", 12, "s", "s"), ())])
def test_representative_moves_about_64_mb(shapes):
    sized = representative(Workload(*shapes))
    assert sized.dim_names == ()
    moved = access_pattern(sized).bytes_moved()
    assert REPRESENTATIVE_BYTES / 2 ** len(shapes[0]) <= moved <= REPRESENTATIVE_BYTES


def test_representative_may_move_all_of_64_mib():
    assert representative(Workload(*[("n",)] * 3, "uint8")).out_shape == (1 << 24,)


@mark.parametrize("then", [(0, "a", "b", "c"), ()])
def test_empty_workload_has_a_representative(then):
    shape = (0, "a", "b", "c")
    sized = representative(Workload(shape, then, shape))
    assert sized.out_shape == (0, 2, 2, 2)
