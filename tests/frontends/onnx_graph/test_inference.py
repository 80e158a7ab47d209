"""What ONNX's inference says, against ONNX's own results; and what may happen to its process."""

import sys

import numpy as np
import pytest

from te_select import ModelError, ToolchainError
from tests.support.models import ints, model, read, tensor
from tests.support.onnx_cases import node_cases

onnx = pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

from te_select.frontends.onnx_graph import inference  # noqa: E402
from te_select.frontends.onnx_graph.flat import Flat  # noqa: E402

node = helper.make_node


def known(made):
    """What is known of the inputs and outputs of a model, by name."""
    names = [info.name for info in (*made.graph.input, *made.graph.output)]
    made = onnx.ModelProto.FromString(made.SerializeToString())
    for index, name in enumerate(names):  # a Where says which tensor of the copy is which
        made.graph.node.append(node("Where", [name] * 3, [f"where {index}"]))
    flat, first = Flat(made), len(made.graph.node) - len(names)
    found = onnx.shape_inference.infer_shapes(flat.model, data_prop=True)  # thousands of processes
    tensors = dict(inference.tensors_of(found.graph, flat.names))
    places = (f"graph#{first + index}" for index in range(len(names)))
    return {
        name: tensors[flat.calls(place)[0][0]]
        for name, place in zip(names, places, strict=True)
        if flat.calls(place)[0][0] in tensors
    }


def named_by_size(proto, feeds, unlike):
    """The model with names for dims: by size, or with a name for every dim."""
    named = onnx.ModelProto()
    named.CopyFrom(proto)
    for info in named.graph.input:
        if info.name not in feeds or not info.type.tensor_type.HasField("shape"):
            continue
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            size = feeds[info.name].shape[axis]
            dim.dim_param = f"{info.name}__{axis}" if unlike else f"s{size}"
    return named


def with_constants(proto, feeds):
    """The model with its vectors of int64 as constants; some of them decide shapes."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(proto)
    for info in list(fixed.graph.input):
        value = feeds.get(info.name)
        if value is not None and value.dtype == np.int64 and value.ndim <= 1 and len(feeds) > 1:
            fixed.graph.initializer.append(numpy_helper.from_array(value, info.name))
            fixed.graph.input.remove(info)
    return fixed


def contradictions(tensors, feeds, results):
    """Where the known facts contradict the computed results."""
    sizes = {}
    for name, value in feeds.items():
        if name in tensors:
            sizes |= dict(zip(tensors[name].shape or (), value.shape, strict=False))
    for name, value in results.items():
        found = tensors.get(name)
        if found is None:
            continue
        if found.dtype not in (None, "string", str(value.dtype)):
            yield name, found.dtype, value.dtype
        if found.shape is None:
            continue
        said = [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in found.shape]
        if len(said) != value.ndim or any(
            dim not in (None, size) for dim, size in zip(said, value.shape, strict=True)
        ):
            yield name, found.shape, value.shape


@pytest.mark.slow
def test_inference_agrees_with_every_node_test_of_onnx():
    """Dims are ints, names by size, or different names for all."""
    compared = 0
    ways = ("ints", "by size", "all unlike")
    wrong = []
    for case, dims in ((case, dims) for case in node_cases() for dims in ways):
        feeds = {name: v for name, v in case.feeds.items() if isinstance(v, np.ndarray)}
        made = case.model
        if dims != "all unlike":
            made = with_constants(made, feeds)
        if dims != "ints":
            made = named_by_size(made, feeds, dims == "all unlike")
        outputs = [info.name for info in made.graph.output]
        pairs = zip(outputs, case.outputs, strict=True)
        results = {name: value for name, value in pairs if isinstance(value, np.ndarray)}
        wrong += [
            (case.name, dims, *found) for found in contradictions(known(made), feeds, results)
        ]
        compared += len(results)
    assert not wrong, wrong
    assert compared > 4500


def vector(size):
    """A vector of ints, of which ONNX's inference notes each element."""
    nodes = [node("Add", ["x", "x"], ["y"]), node("Where", ["c", "y", "y"], ["out"])]
    return model(nodes, [tensor("x", "int64", [size]), tensor("c", "bool", [])])


def test_inference_that_takes_all_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inference, "_MOST_BYTES", 256 << 20)
    (found,) = read(vector(2**16), tmp_path)
    assert found.workload.out_shape == (2**16,)
    with pytest.raises(ModelError, match=r"onnx cannot infer the shapes: .*bad_alloc"):
        read(vector(2**40), tmp_path)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import os; os.kill(os.getpid(), 11)", "cannot infer the shapes: SIGSEGV"),
        ("import sys; sys.exit('one\\ntwo')", "cannot infer the shapes: one two"),
    ],
)
def test_process_that_ends_early_is_an_error_in_one_line(tmp_path, monkeypatch, script, said):
    (tmp_path / "child.py").write_text(script)
    monkeypatch.setattr(inference, "_CHILD", tmp_path / "child.py")
    with pytest.raises(ModelError, match=said):
        read(vector(4), tmp_path)


def test_no_code_that_loses_errors_of_handlers_waits_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr("subprocess._PopenSelector", None)  # it takes a TypeError for a bad file
    assert read(vector(4), tmp_path)


def test_process_that_cannot_start_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(ToolchainError, match=r"cannot start: .*No such file"):
        read(vector(4), tmp_path)


def test_large_initializers_are_not_copied():
    weight = numpy_helper.from_array(np.zeros((64, 1024), np.float32), "w")
    flat = Flat(
        model([node("MatMul", ["x", "w"], ["y"])], [], initializer=[weight, ints("x", [1])])
    )
    assert flat.model.ByteSize() < 1000
    assert [list(held.dims) for held in flat.model.graph.initializer] == [[1]]
