import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pytest import mark, raises

from te_select import ModelError
from te_select.frontends.status import Site, model_node
from te_select.frontends.tensors import Tensor
from te_select.operator.systems import OPS
from tests.support import shapes


def site(system=OPS["onnx"], mode="multidirectional", axis=-1, **of_site):
    return Site("node", "graph#0", "Where-16", "Not", system, mode, axis, **of_site)


def judged(cond, then, else_, dtype="float32", at=None, **of_tensors):
    operands = [
        Tensor(t, shape, **of_tensors)
        for t, shape in (("bool", cond), (dtype, then), (dtype, else_))
    ]
    return model_node(at or site(), operands)


@mark.parametrize("of", ["n,m () ()", "n,1 n,m m", "n n,n 1,1", "2,n n 1,1,n", "1 1 n"])
def test_one_name_on_an_axis_compiles(of):
    node = judged(*shapes(of))
    assert node.status == "compiled"
    assert node.workload.out_shape == node.out_shape
    assert node.reason == ""


@mark.parametrize(
    "cond, then, else_, reason",
    [
        (("n",), (4,), (), "n of cond and 4 of then"),
        (("n",), ("m",), (), "n of cond and m of then"),
        (("n", 4), (), ("m", 1), "n of cond and m of else"),
        (("n",), (0,), (), "n of cond and 0 of then"),
        (None, (4,), (), "the rank of cond"),
        ((4,), (4,), None, "the rank of else"),
        ((4, None), (4, 1), (), "dim 1 of cond"),
        (("n",), (2, "n"), (None, "n"), "dim 0 of else"),
    ],
)
def test_what_the_call_decides_is_dispatched(cond, then, else_, reason):
    node = judged(cond, then, else_)
    assert (node.status, node.workload) == ("dispatched", None)
    assert reason in node.reason


@mark.parametrize("dim", [1, "n", None])
def test_more_axes_than_any_kernel_takes_are_refused(dim):
    assert judged((dim,) * 64, (4,), ()).status != "refused"
    node = judged((dim,) * 70, (4,), ())
    assert (node.status, node.reason) == ("refused", "it has 70 axes, and kernels take up to 64")


def test_handful_of_ints_that_makes_shapes_is_shape():
    makes = site(makes_shapes=True)
    for elements, dtype in ((4, "int32"), (64, "int64")):
        assert judged((elements,), (elements,), (), dtype, at=makes).status == "shape"
    assert judged((4,), (4,), (), "int64", makes, constant=True).status == "shape"
    assert judged((4,), (4,), (), "int64").status == "compiled"  # no shape is made from it
    assert judged((4,), (4,), (4,), "float32", at=makes).status == "compiled"
    assert judged((4, 4), (4,), (4,), "int64", at=makes).status == "compiled"
    assert judged(("n",), ("n",), ("n",), "int64", at=makes).status == "compiled"
    assert judged((65,), (65,), (65,), "int64", at=makes).status == "compiled"


def test_rule_none_makes_all_three_shapes_one():
    none = site(OPS["openvino"], "none")
    node = judged(("n", 4), ("m", 4), ("n", "m"), at=none)
    assert node.workload.cond_shape == node.workload.then_shape == ("n", 4)
    assert judged((None, 4), (3, None), ("m", 4), at=none).out_shape == (3, 4)


def test_pdpd_lays_else_and_cond_over_then():
    node = judged(("n",), (2, "n", 4), ("n", 4), at=site(OPS["openvino"], "pdpd", 1))
    assert (node.workload.out_shape, node.workload.axis) == ((2, "n", 4), 1)
    node = judged((3,), (2, "n", 4), ("n", 4), at=site(OPS["openvino"], "pdpd", 1))
    assert node.status == "dispatched"


def test_onednn_cond_that_would_widen_the_output_is_no_guess():
    onednn = site(OPS["onednn"], "numpy")
    assert judged(("n",), (1,), (), at=onednn).status == "dispatched"
    with raises(ModelError, match="cond"):
        judged((3,), (1,), (), at=onednn)


dims = st.sampled_from([1, 1, 2, 3, "n", "m", None])
any_shape = st.lists(dims, max_size=3).map(tuple)


@given(any_shape, any_shape, any_shape, st.integers(0, 4), st.integers(0, 4))
def test_compiled_workload_takes_every_call_that_broadcasts(cond, then, else_, n, m):
    """For all sizes: if NumPy broadcasts, the workload has the same shape."""

    def bound(shape):
        values = {"n": n, "m": m, None: n}
        return tuple(values.get(dim, dim) for dim in shape)

    try:
        node = judged(cond, then, else_)
    except ModelError:
        with raises(ValueError, match=r"broadcast|mismatch"):
            np.broadcast_shapes(*map(bound, (cond, then, else_)))
        return
    if node.workload is None:
        return
    try:
        want = np.broadcast_shapes(*map(bound, (cond, then, else_)))
    except ValueError:
        return
    assert node.workload.bind({"n": n, "m": m}).out_shape == want
