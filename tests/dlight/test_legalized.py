import pytest
from tvm import te, tirx

from te_select.dlight.legalized import legalized


@pytest.mark.parametrize(
    "shape, index",
    [((5,), lambda i: (i,)), ((5,), lambda i: (i + 2,)), ((3, 3), lambda i: (i, i))],
)
def test_select_of_a_part_of_an_operand_is_no_where(shape, index):
    cond = te.placeholder(shape, "bool", "cond")
    x, y = (te.placeholder((3,), "float32", name) for name in "xy")
    out = te.compute((3,), lambda i: tirx.Select(cond[index(i)], x[i], y[i]), name="T_where")
    assert legalized(te.create_prim_func([cond, x, y, out])) is None
