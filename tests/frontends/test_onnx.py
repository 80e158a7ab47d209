import numpy as np
import pytest

from te_select import ModelError, ToolchainError, Workload, read_model
from tests.support.models import ints, model, read, tensor

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

node = helper.make_node
WHERE = node("Where", ["c", "x", "y"], ["out"], name="w")
COND = tensor("c", "bool", ["batch", 1])
X = tensor("x", "float32", ["batch", 4])
Y = tensor("y", "float32", [])


def only(nodes):
    (found,) = nodes
    return found


def test_node_says_all_that_a_table_needs(tmp_path):
    found = only(read(model([WHERE], [COND, X, Y]), tmp_path))
    assert found.workload == Workload.onnx_where(("batch", 1), ("batch", 4), ())
    assert (found.name, found.place, found.op) == ("w", "graph#0", "Where-16")
    assert (found.status, found.reason, found.cond_producer) == ("compiled", "", "graph input")
    assert (found.cond_shape, found.then_shape) == (("batch", 1), ("batch", 4))
    assert (found.else_shape, found.out_shape) == ((), ("batch", 4))
    assert (found.dtype, found.dims) == ("float32", {"batch": "batch"})


def test_file_without_a_where_has_no_nodes(tmp_path):
    assert read(model([node("Neg", ["x"], ["out"])], [X]), tmp_path) == []


@pytest.mark.parametrize(("opset", "op"), [(9, "Where-9"), (15, "Where-9"), (16, "Where-16")])
def test_version_of_where_follows_the_opset(tmp_path, opset, op):
    found = only(read(model([WHERE], [COND, X, Y], opsets={"": opset}), tmp_path))
    assert found.op == op


def test_bfloat16_comes_with_opset_16(tmp_path):
    inputs = [COND, tensor("x", "bfloat16", [4]), tensor("y", "bfloat16", [])]
    assert only(read(model([WHERE], inputs), tmp_path)).status == "compiled"
    old = only(read(model([WHERE], inputs, opsets={"": 13}), tmp_path))
    assert old.status == "refused"
    assert "opset 16" in old.reason


def test_strings_are_refused_with_what_selects_them(tmp_path):
    inputs = [COND, tensor("x", "string", ["batch", 4]), tensor("y", "string", [])]
    found = only(read(model([WHERE], inputs), tmp_path))
    assert found.status == "refused"
    assert "NumPy" in found.reason


def test_torchscript_arithmetic_before_an_expand_is_not_built(tmp_path):
    """Where(Equal(shape, -1), ones, shape): a few ints; ONNX does not know the sizes behind it."""
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Gather", ["shape", "one"], ["sequence"]),
        node("Concat", ["batch", "ones1", "sequence", "minus"], ["wanted"], axis=0),
        node("ConstantOfShape", ["four"], ["ones"], value=numpy_helper.from_array(np.array([1]))),
        node("Equal", ["wanted", "minus"], ["is_minus"]),
        node("Where", ["is_minus", "ones", "wanted"], ["shape_now"], name="arithmetic"),
        node("Expand", ["mask", "shape_now"], ["c"]),
        node("Where", ["c", "y", "y"], ["out"], name="selection"),
    ]
    inputs = [
        tensor("x", "float32", ["batch", "sequence", 8]),
        tensor("mask", "bool", ["batch", 1, 1, "sequence"]),
        Y,
    ]
    values = {"zero": [0], "one": [1], "ones1": [1], "minus": [-1], "four": [4]}
    parts = [ints(name, value) for name, value in values.items()]
    arithmetic, selection = read(model(nodes, inputs, initializer=parts), tmp_path)
    assert (arithmetic.status, arithmetic.cond_producer) == ("shape", "Equal")
    assert (selection.status, selection.cond_producer) == ("dispatched", "Expand")
    assert selection.cond_shape == ("?", "?", "?", "?")


def test_shape_that_onnx_propagates_is_known(tmp_path):
    nodes = [
        node("Shape", ["x"], ["shape"]),
        node("Gather", ["shape", "zero"], ["batch"]),
        node("Concat", ["batch", "one"], ["wanted"], axis=0),
        node("Reshape", ["m", "wanted"], ["c"]),
        node("Where", ["c", "x", "y"], ["out"]),
    ]
    inputs = [X, tensor("m", "bool", ["n"]), Y]
    parts = [ints("zero", [0]), ints("one", [1])]
    found = only(read(model(nodes, inputs, initializer=parts), tmp_path))
    assert (found.status, found.cond_shape) == ("compiled", ("batch", 1))


def test_size_that_is_the_sum_of_two_is_not_known(tmp_path):
    nodes = [
        node("Concat", ["old", "new"], ["all"], axis=1),
        node("Where", ["c", "all", "y"], ["out"]),
    ]
    inputs = [
        tensor("old", "float32", ["batch", "past"]),
        tensor("new", "float32", ["batch", "sequence"]),
        tensor("c", "bool", ["batch", "sequence + past"]),
        Y,
    ]
    found = only(read(model(nodes, inputs), tmp_path))
    assert (found.status, found.reason) == ("dispatched", "dim 1 of then is known only at the call")
    assert (found.cond_shape, found.then_shape) == (("batch", "sequence_past"), ("batch", "?"))
    assert found.dims == {"batch": "batch", "sequence_past": "sequence + past"}


def test_dim_that_is_a_number_in_quotes_is_a_name(tmp_path):
    inputs = [tensor("c", "bool", ["2"]), tensor("x", "float32", ["2"]), Y]
    found = only(read(model([WHERE], inputs), tmp_path))
    assert found.cond_shape == ("dim_2",)
    assert found.dims == {"dim_2": "2"}
    against = [tensor("c", "bool", ["2"]), tensor("x", "float32", [2]), Y]
    assert only(read(model([WHERE], against), tmp_path)).status == "dispatched"


def test_names_that_are_no_identifiers_or_clash_are_told_apart(tmp_path):
    inputs = [tensor("c", "bool", ["a.b", "a b"]), tensor("x", "float32", ["a_b", 1, 1]), Y]
    found = only(read(model([WHERE], inputs), tmp_path))
    assert found.workload is not None
    assert sorted(found.dims.values()) == ["a b", "a.b", "a_b"]
    assert len(set(found.out_shape)) == 3


@pytest.mark.parametrize("said", [None, -1])
def test_dim_that_the_file_leaves_open_is_a_size_of_its_own(tmp_path, said):
    inputs = [tensor("c", "bool", [said, said]), Y, tensor("x", "float32", [])]
    found = only(read(model([WHERE], inputs), tmp_path))
    assert found.cond_shape == ("c_0", "c_1")
    assert found.dims["c_1"] == "dim 1 of input 'c'"


def test_dim_of_0_is_a_size_like_others(tmp_path):
    inputs = [tensor("c", "bool", [0, 1]), tensor("x", "float32", [0, 4]), Y]
    assert only(read(model([WHERE], inputs), tmp_path)).out_shape == (0, 4)


def test_symbols_that_only_the_exporter_states_are_not_trusted(tmp_path):
    """TorchScript calls two sizes ``Whereoutput_dim_0``; here they are 1 and 5 at the call."""
    nodes = [
        node("NonZero", ["a"], ["rows"]),
        node("NonZero", ["b"], ["other"]),
        node("Cast", ["rows"], ["c"], to=TensorProto.BOOL),
        node("Where", ["c", "other", "other"], ["out"]),
    ]
    inputs = [tensor("a", "float32", ["n"]), tensor("b", "float32", ["n"])]
    stated = [
        tensor("c", "bool", [1, "Whereoutput_dim_0"]),
        tensor("other", "int64", [1, "Whereoutput_dim_0"]),
    ]
    found = only(read(model(nodes, inputs, value_info=stated), tmp_path))
    assert found.status == "dispatched"
    assert found.cond_shape == found.then_shape == (1, "?")


def test_what_the_file_states_inside_is_not_trusted(tmp_path):
    nodes = [
        node("Unheard", ["x"], ["z"], domain="far.away"),
        node("Where", ["c", "z", "y"], ["out"]),
    ]
    parts = {"value_info": [tensor("z", "float32", ["batch", 4])]}
    parts["outputs"] = [tensor("z", "float32", ["batch", 4])]
    made = model(nodes, [tensor("c", "bool", [4]), X, Y], opsets={"": 17, "far.away": 1}, **parts)
    found = only(read(made, tmp_path))
    assert (found.status, found.then_shape, found.dtype) == ("dispatched", None, "float32")


def test_name_that_onnx_invented_is_no_name(tmp_path):
    """A file that ONNX's inference has written may have it in two places for two sizes."""
    inputs = [tensor("c", "bool", ["unk__0"]), tensor("x", "float32", ["unk__0"]), Y]
    assert only(read(model([WHERE], inputs), tmp_path)).status == "dispatched"
    nodes = [node("NonZero", ["x"], ["z"]), node("Where", ["c", "z", "z"], ["out"])]
    found = only(read(model(nodes, [COND, X]), tmp_path))
    assert (found.status, found.then_shape) == ("dispatched", (2, "?"))


def test_what_follows_from_inputs_counts_more_than_stated(tmp_path):
    nodes = [node("Neg", ["x"], ["z"]), node("Where", ["c", "z", "y"], ["out"])]
    stated = [tensor("z", "float32", [7, 7])]
    found = only(read(model(nodes, [COND, X, Y], value_info=stated), tmp_path))
    assert found.then_shape == ("batch", 4)


def test_constants_are_folded_but_no_overridable_default(tmp_path):
    nodes = [
        node("Constant", [], ["c"], value=numpy_helper.from_array(np.array([True, False]))),
        WHERE,
    ]
    weights = [numpy_helper.from_array(np.zeros(2, np.float32), name) for name in ("x", "y")]
    assert only(read(model(nodes, [], initializer=weights), tmp_path)).status == "folded"
    listed = [tensor("x", "float32", [2])]
    assert only(read(model(nodes, listed, initializer=weights), tmp_path)).status == "compiled"
    old = model(nodes, listed, initializer=weights, ir_version=3)  # all must be inputs, too
    assert only(read(old, tmp_path)).status == "folded"


def test_random_operand_is_not_constant(tmp_path):
    nodes = [
        node("RandomNormal", [], ["x"], shape=[4]),
        node("Constant", [], ["c"], value=numpy_helper.from_array(np.array([True]))),
        node("Constant", [], ["y"], value=numpy_helper.from_array(np.zeros(1, np.float32))),
        WHERE,
    ]
    assert only(read(model(nodes, []), tmp_path)).status == "compiled"


def test_external_data_is_not_read(tmp_path):
    held = TensorProto(name="x", dims=[4], data_type=TensorProto.FLOAT)
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="location", value="nowhere.bin")
    found = only(read(model([WHERE], [COND, Y], initializer=[held]), tmp_path))
    assert found.then_shape == (4,)


def test_nodes_of_one_name_are_told_apart_by_their_places(tmp_path):
    nodes = [WHERE, node("Where", ["c", "out", "y"], ["again"], name="w")]
    found = read(model(nodes, [COND, X, Y]), tmp_path)
    assert [n.name for n in found] == ["w", "w"]
    assert [n.place for n in found] == ["graph#0", "graph#1"]


def test_nodes_out_of_order_are_read_in_their_places(tmp_path):
    nodes = [node("Where", ["n", "x", "y"], ["out"]), node("Not", ["c"], ["n"])]
    found = only(read(model(nodes, [COND, X, Y]), tmp_path))
    assert (found.place, found.cond_shape) == ("graph#0", ("batch", 1))


def test_operators_that_are_functions_are_listed_on_request(tmp_path):
    made = model([node("Shrink", ["x"], ["out"], lambd=0.5)], [X], opsets={"": 18})
    assert read(made, tmp_path) == []
    inner = read(made, tmp_path, expand=True)
    assert [n.place for n in inner] == ["graph/0:Shrink#11", "graph/0:Shrink#12"]
    assert {n.out_shape for n in inner} == {("batch", 4)}


def test_missing_package_is_named_with_what_brings_it(tmp_path, monkeypatch):
    path = tmp_path / "model.onnx"
    path.write_bytes(model([WHERE], [COND, X, Y]).SerializeToString())
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(ToolchainError, match=r"te-select\[models\]"):
        read_model(path)


# Bad input


INPUTS = [COND, X, Y]
BROKEN = {
    "shapes that contradict each other": (
        model([WHERE], [tensor("c", "bool", [3]), tensor("x", "float32", [4]), Y]), "graph#0"),
    "cycle": (
        model([node("Not", ["b"], ["a"]), node("Not", ["a"], ["b"]), WHERE], INPUTS), "cycle"),
    "node that reads what it makes": (
        model([node("Not", ["a"], ["a"]), WHERE], INPUTS), "cycle: graph#0"),
    "node that reads what nothing makes": (model([WHERE], [COND, Y]), "'x'"),
    "two nodes that make one tensor": (model([WHERE, WHERE], INPUTS), "'out'"),
    "opset of the future": (model([WHERE], INPUTS, opsets={"": 999}), "opset 999"),
    "opset 8": (model([WHERE], INPUTS, opsets={"": 8}), "opset"),
    "opset 0": (model([WHERE], INPUTS, opsets={"": 0}), "opset"),
    "opset of another domain": (model([WHERE], INPUTS, opsets={"other": 3}), "opset"),
    "cond that is not bool": (model([WHERE], [tensor("c", "uint8", [4]), X, Y]), "expected bool"),
    "type that is that of a malformed node's operator": (
        model([node("IsNaN", ["x", "x"], ["z"]), node("Where", ["c", "z", "y"], ["o"])], INPUTS),
        "then is bool and else is float32"),
    "Where with two inputs": (
        model([node("Where", ["c", "x"], ["out"])], [COND, X]), "expected three"),
    "dims of a tensor that no memory holds": (
        model([WHERE], [tensor("c", "bool", [2**40, 2**40]), Y, tensor("x", "float32", [])]),
        "2^57"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_file_that_cannot_be_a_model_is_one_clear_line(tmp_path, case):
    made, said = BROKEN[case]
    with pytest.raises(ModelError) as caught:
        read(made, tmp_path)
    text = str(caught.value)
    assert said in text
    assert "\n" not in text.strip()
    assert text.startswith(str(tmp_path))


def test_dim_param_that_is_two_sizes_is_what_the_tensor_is(tmp_path):
    """Two defaults of different lengths have one name; at the call they keep their lengths."""
    inputs = [tensor("c", "bool", ["n"]), tensor("x", "float32", ["n"]), Y]
    weights = [numpy_helper.from_array(np.zeros(3, np.float32), "x")]
    found = only(read(model([WHERE], inputs, initializer=weights, ir_version=3), tmp_path))
    assert (found.status, found.then_shape) == ("dispatched", (3,))
