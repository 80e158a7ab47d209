import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from te_select import ModelError
from te_select.frontends.symbolic.expressions import symbol
from te_select.frontends.symbolic.names import Names
from te_select.frontends.symbolic.ordering import minimum
from te_select.frontends.symbolic.status import Judge, Rule, Site, one_view
from te_select.frontends.symbolic.tensors import Sizes, Tensor
from te_select.operator.systems import OPS, SYSTEMS

SITE = Site("node", "graph#0", "Where-16", "Not")
ONNX = Rule(SYSTEMS["onnx.Where-16"], "multidirectional")
N, M = symbol("n"), symbol("m")


def judged(cond, then, else_, dtype="float32", rule=ONNX, site=SITE, **of_tensors):
    shapes = (cond, then, else_)
    operands = tuple(
        Tensor(t, shape, **of_tensors)
        for t, shape in zip(("bool", dtype, dtype), shapes, strict=True)
    )
    return Judge(Names(Sizes())).node(site, operands, rule)


@pytest.mark.parametrize(
    ("cond", "then", "else_"),
    [
        ((N, M), (), ()),
        ((N, 1), (N, M), (M,)),
        ((N,), (N, N), (1, 1)),
        ((2, N), (N,), (1, 1, N)),
        ((1,), (1,), (N,)),
    ],
)
def test_one_name_on_an_axis_compiles(cond, then, else_):
    node = judged(cond, then, else_)
    assert node.status == "compiled"
    assert node.workload is not None
    assert node.workload.out_shape == node.out_shape
    assert node.reason == ""


@pytest.mark.parametrize(
    ("cond", "then", "else_", "reason"),
    [
        ((N,), (4,), (), "n of cond and 4 of then"),
        ((N,), (M,), (), "n of cond and m of then"),
        ((N, 4), (), (M, 1), "n of cond and m of else"),
        ((N,), (0,), (), "n of cond and 0 of then"),
        (None, (4,), (), "the rank of cond"),
        ((4,), (4,), None, "the rank of else"),
    ],
)
def test_what_the_call_decides_is_dispatched(cond, then, else_, reason):
    node = judged(cond, then, else_)
    assert (node.status, node.workload) == ("dispatched", None)
    assert reason in node.reason


def test_size_that_is_cut_to_a_table_is_the_size():
    node = judged((1, minimum(64, N)), (M, N), ())
    assert node.status == "compiled"
    assert node.cond_shape == (1, "n")


def test_size_that_is_cut_to_one_is_not_the_size():
    assert judged((1, minimum(1, N)), (M, N), ()).status == "dispatched"


@pytest.mark.parametrize("constants", [(True, True), (True, False), (False, True), (False, False)])
def test_operand_is_constant_if_it_is_in_every_call(constants):
    calls = [(Tensor("bool", (4,), constant=each),) * 3 for each in constants]
    for tensor in one_view(calls, Sizes()):
        assert tensor.constant == all(constants)


def test_unknown_element_type_is_dispatched():
    assert judged((4,), (4,), (), dtype=None).status == "dispatched"


@pytest.mark.parametrize("dtype", ["string", "int4", "uint4", "float4e2m1", "nf4", "u1"])
def test_strings_and_parts_of_bytes_are_refused(dtype):
    node = judged((4,), (4,), (), dtype=dtype)
    assert node.status == "refused"
    assert node.reason
    assert node.dtype == dtype


def test_type_that_the_operator_does_not_take_is_refused():
    node = judged((4,), (4,), (), "bfloat16", Rule(SYSTEMS["onnx.Where-9"], "multidirectional"))
    assert node.status == "refused"
    assert "opset 16" in node.reason


def test_constant_operands_are_folded():
    assert judged((4,), (4,), (), constant=True).status == "folded"


def test_handful_of_ints_that_makes_shapes_is_shape():
    makes = Site("node", "graph#0", "Where-16", "Equal", makes_shapes=True)
    for elements in (4, 64):
        assert judged((elements,), (elements,), (), "int64", site=makes).status == "shape"
    assert judged((4,), (4,), (), "int64").status == "compiled"  # no shape is made from it
    assert judged((4,), (4,), (4,), "float32", site=makes).status == "compiled"
    assert judged((4, 4), (4,), (4,), "int64", site=makes).status == "compiled"
    assert judged((N,), (N,), (N,), "int64", site=makes).status == "compiled"
    assert judged((65,), (65,), (65,), "int64", site=makes).status == "compiled"


def test_contradicting_shapes_of_a_node_that_runs_are_an_error():
    with pytest.raises(
        ModelError, match=r"graph#0.*3 of cond and 4 of then, which do not broadcast"
    ):
        judged((3,), (4,), ())
    never = Site("node", "graph#0", "Where-16", "Not", conditional=True)
    assert judged((3,), (4,), (), site=never).status == "dispatched"


def test_types_that_contradict_each_other_are_an_error():
    names = Names(Sizes())
    with pytest.raises(ModelError, match="cond is float32; expected bool"):
        Judge(names).node(SITE, (Tensor("float32", ()),) * 3, ONNX)
    with pytest.raises(ModelError, match="then is int64 and else is float32"):
        operands = (Tensor("bool", ()), Tensor("int64", ()), Tensor("float32", ()))
        Judge(names).node(SITE, operands, ONNX)


def test_rule_none_makes_all_three_shapes_one():
    node = judged((N, 4), (M, 4), (N, M), rule=Rule(OPS["openvino"], "none"))
    assert node.workload is not None
    assert node.workload.cond_shape == node.workload.then_shape == ("n", 4)


def test_pdpd_lays_else_and_cond_over_then():
    node = judged((N,), (2, N, 4), (N, 4), rule=Rule(OPS["openvino"], "pdpd", 1))
    assert node.workload is not None
    assert (node.workload.out_shape, node.workload.axis) == ((2, "n", 4), 1)
    node = judged((3,), (2, N, 4), (N, 4), rule=Rule(OPS["openvino"], "pdpd", 1))
    assert node.status == "dispatched"


def test_onednn_cond_that_would_widen_the_output_is_no_guess():
    rule = Rule(OPS["onednn"], "numpy")
    assert judged((N,), (1,), (), rule=rule).status == "dispatched"
    with pytest.raises(ModelError, match="cond"):
        judged((3,), (1,), (), rule=rule)


def test_nodes_that_are_alike_differ_in_name_and_place_only():
    judge = Judge(Names(Sizes()))
    operands = (Tensor("bool", (N,)), Tensor("int8", ()), Tensor("int8", ()))
    one = judge.node(SITE, operands, ONNX)
    two = judge.node(Site("other", "graph#7", "Where-9", "Or"), operands, ONNX)
    assert two.workload is one.workload
    assert (two.name, two.place, two.op, two.cond_producer) == ("other", "graph#7", "Where-9", "Or")


def test_dims_that_differ_alike_between_calls_are_one_name():
    a = (Tensor("bool", (2, 1)), Tensor("int8", (2, N)), Tensor("int8", ()))
    b = (Tensor("bool", (3, 1)), Tensor("int8", (3, 4)), Tensor("int8", ()))
    cond, then, else_ = one_view([a, b], Sizes())
    assert cond.shape is not None
    assert then.shape is not None
    assert cond.shape[0] == then.shape[0] != then.shape[1]
    assert cond.shape[1] == 1
    assert else_.shape == ()


def test_ranks_that_differ_between_calls_are_unknown():
    a = (Tensor("bool", (2,)), Tensor("int8", ()), Tensor("int8", ()))
    b = (Tensor("bool", ()), Tensor("int16", ()), Tensor("int8", ()))
    cond, then, _ = one_view([a, b], Sizes())
    assert cond.shape is None
    assert then.dtype is None


dims = st.sampled_from([1, 1, 2, 3, N, M, minimum(2, N)])
shapes = st.lists(dims, max_size=3).map(tuple)


@settings(deadline=None)
@given(shapes, shapes, shapes, st.integers(0, 4), st.integers(0, 4))
def test_compiled_workload_takes_every_call_that_broadcasts(cond, then, else_, n, m):
    """For all sizes: if NumPy broadcasts, the workload has the same shape."""

    def bound(shape):
        values = {N: n, M: m, minimum(2, N): min(2, n)}
        return tuple(values.get(dim, dim) for dim in shape)

    try:
        node = judged(cond, then, else_)
    except ModelError:
        with pytest.raises(ValueError, match=r"broadcast|mismatch"):
            np.broadcast_shapes(*map(bound, (cond, then, else_)))
        return
    if node.workload is None:
        return
    try:
        want = np.broadcast_shapes(*map(bound, (cond, then, else_)))
    except ValueError:
        return
    env = {}
    given_dims = zip(
        (*cond, *then, *else_), (*node.cond_shape, *node.then_shape, *node.else_shape), strict=True
    )
    for dim, name in given_dims:
        if isinstance(name, str):
            assert env.setdefault(name, bound((dim,))[0]) == bound((dim,))[0]
    assert node.workload.bind(env).out_shape == want
