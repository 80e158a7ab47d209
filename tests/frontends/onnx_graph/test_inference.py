"""What may happen to the process of ONNX's inference."""

import numpy as np
from pytest import importorskip, mark, raises

from te_select import ModelError, ToolchainError
from tests.support.models import ints, model, read, tensor

onnx = importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

from te_select.frontends.onnx_graph.flat import Flat  # noqa: E402

node = helper.make_node


def vector(size):
    """A vector of ints, of which ONNX's inference notes each element."""
    nodes = [node("Add", ["x", "x"], ["y"]), node("Where", ["c", "y", "y"], ["out"])]
    return model(nodes, [tensor("x", "int64", [size]), tensor("c", "bool", [])])


def test_inference_that_takes_all_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("te_select.frontends.onnx_graph.inference._MOST_BYTES", 256 << 20)
    (found,) = read(vector(2**16), tmp_path)
    assert found.workload.out_shape == (2**16,)
    with raises(ModelError, match=r"onnx cannot infer the shapes: .*bad_alloc"):
        read(vector(2**40), tmp_path)


@mark.parametrize(
    "script, said",
    [
        ("import os; os.kill(os.getpid(), 11)", "cannot infer the shapes: SIGSEGV"),
        ("import sys; sys.exit('one\\ntwo')", "cannot infer the shapes: one two"),
    ],
)
def test_process_that_ends_early_is_an_error_in_one_line(tmp_path, monkeypatch, script, said):
    (tmp_path / "child.py").write_text(script)
    monkeypatch.setattr("te_select.frontends.onnx_graph.inference._CHILD", tmp_path / "child.py")
    with raises(ModelError, match=said):
        read(vector(4), tmp_path)


def test_no_code_that_loses_errors_of_handlers_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("subprocess._PopenSelector", None)  # it takes a TypeError for a bad file
    assert read(vector(4), tmp_path)


def test_process_that_cannot_start_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with raises(ToolchainError, match=r"cannot start: .*No such file"):
        read(vector(4), tmp_path)


def test_large_initializers_are_not_copied():
    weight = numpy_helper.from_array(np.zeros((64, 1024), np.float32), "w")
    flat = Flat(
        model([node("MatMul", ["x", "w"], ["y"])], [], initializer=[weight, ints("x", [1])])
    )
    assert flat.model.ByteSize() < 1000
    assert [list(held.dims) for held in flat.model.graph.initializer] == [[1]]
