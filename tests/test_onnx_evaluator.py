import os
import sys

import numpy as np
import pytest

import te_select
from te_select import ModelError, ToolchainError, onnx_reference
from te_select import onnx_evaluator as module
from tests.support.models import model, tensor
from tests.support.onnx_cases import node_cases

onnx = pytest.importorskip("onnx")
from onnx import helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

COND, X = tensor("c", "bool", ["n", 1]), tensor("x", "float32", ["n", 4])
FEEDS = {
    "c": np.array([[True], [False]]),
    "x": np.array([[-0.0, 1, np.nan, 2], [3, -0.0, 4, 5]], np.float32),
}


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


@pytest.fixture
def calls(monkeypatch):
    """The operands of every Where that kernels of te-select have served."""
    pytest.importorskip("te_select.runtime.call._extension")
    seen = []

    def noted(*operands):
        before = te_select.where.stats().calls
        found = te_select.where(*operands)
        seen.extend([operands] * (te_select.where.stats().calls - before))
        return found

    monkeypatch.setattr(module, "where", noted)
    return seen


def has_where(proto):
    graphs = [proto.graph, *proto.functions]
    while graphs:
        for one in graphs.pop().node:
            if one.op_type == "Where":
                return True
            graphs += [a.g for a in one.attribute if a.HasField("g")]
    return False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_model_of_onnx_with_a_where_gives_the_same_bits(calls):
    """Models with Where, and with expanded functions of ONNX whose bodies have one."""
    models = 0
    for case in node_cases():
        if not has_where(case.model):
            continue
        models += 1
        got = onnx_reference(case.model).run(None, case.feeds)
        want = ReferenceEvaluator(case.model).run(None, case.feeds)
        for ours, theirs in zip(got, want, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), case.name
            assert ours.tobytes() == theirs.tobytes(), case.name
    assert models > 90
    assert len(calls) > 200


def test_where_in_bodies_and_functions_runs_kernels_too(calls):
    out = [tensor("o", "float32", None)]
    branch = helper.make_graph([node("Where", ["c", "x", "y"], ["o"])], "b", [], out)
    masked = helper.make_function(
        "local",
        "masked",
        ["m", "v"],
        ["o"],
        [node("Where", ["m", "v", "v"], ["o"])],
        [helper.make_opsetid("", 17)],
    )
    nodes = [
        node("Neg", ["x"], ["y"]),
        node("If", ["k"], ["z"], then_branch=branch, else_branch=branch),
        node("masked", ["c", "z"], ["out"], domain="local"),
    ]
    made = model(
        nodes,
        [COND, X, tensor("k", "bool", [])],
        outputs=[tensor("out", "float32", None)],
        functions=[masked],
        opsets={"": 17, "local": 1},
    )
    (out,) = onnx_reference(made).run(None, FEEDS | {"k": np.array(True)})
    assert out.tobytes() == np.where(FEEDS["c"], FEEDS["x"], -FEEDS["x"]).tobytes()
    assert len(calls) == 2


def test_strings_are_selected_by_numpy(calls):
    made = model(
        [node("Where", ["c", "x", "x"], ["out"])],
        [COND, tensor("x", "string", [2])],
        outputs=[tensor("out", "string", None)],
    )
    words = np.array(["a", "b"], object)
    (out,) = onnx_reference(made).run(None, {"c": FEEDS["c"], "x": words})
    assert out.tolist() == [["a", "b"], ["a", "b"]]
    assert not calls


def test_model_is_taken_as_a_file_as_bytes_or_as_it_is(tmp_path):
    nodes = [node("Where", ["c", "x", "x"], ["out"])]
    made = model(nodes, [COND, X], outputs=[tensor("out", "float32", None)])
    path = tmp_path / "model.onnx"
    path.write_bytes(made.SerializeToString())
    for given in (made, made.SerializeToString(), path, str(path)):
        (out,) = onnx_reference(given).run(None, FEEDS)
        assert out.tobytes() == FEEDS["x"].tobytes()


def test_file_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="no ONNX model"):
        onnx_reference(b"no model")
    with pytest.raises(ModelError, match=r"nowhere\.onnx"):
        onnx_reference(tmp_path / "nowhere.onnx")
    os.mkfifo(tmp_path / "pipe.onnx")
    with pytest.raises(ModelError, match="is not a regular file"):
        onnx_reference(tmp_path / "pipe.onnx")


def test_missing_package_is_named_with_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ToolchainError, match=r"te-select\[models\]"):
        te_select.onnx_reference(b"")
