from itertools import pairwise

import numpy as np
from pytest import importorskip, mark

from te_select import Workload
from tests.frontends.told import check, check_refused
from tests.support.models import ints, model, read, tensor

onnx = importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

node = helper.make_node
WHERE = node("Where", ["c", "x", "y"], ["out"], name="w")
COND = tensor("c", "bool", ["batch", 1])
X = tensor("x", "float32", ["batch", 4])
Y = tensor("y", "float32", [])
INPUTS = [COND, X, Y]


def like(cond, then, dtype="float32"):
    """Inputs of these shapes, and a number."""
    return [tensor("c", "bool", cond), tensor("x", dtype, then), tensor("y", dtype, [])]


def of(array, name=None):
    return numpy_helper.from_array(np.array(array), name)


def constant(name, array):
    return node("Constant", [], [name], value=of(array))


def external(name):
    held = TensorProto(name=name, dims=[4], data_type=TensorProto.FLOAT)
    held.data_location = TensorProto.EXTERNAL
    held.external_data.add(key="location", value="nowhere.bin")
    return held


WEIGHTS = [of(np.zeros(2, "f4"), name) for name in ("x", "y")]
FLAGS = constant("c", [True, False])
RESHAPED = [
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "zero"], ["batch"]),
    node("Concat", ["batch", "one"], ["wanted"], axis=0),
    node("Reshape", ["m", "wanted"], ["c"]),
    WHERE,
]
# Where(Equal(shape, -1), ones, shape): a few ints; ONNX does not know the sizes behind it.
TORCHSCRIPT = [
    node("Shape", ["x"], ["shape"]),
    node("Gather", ["shape", "zero"], ["batch"]),
    node("Gather", ["shape", "one"], ["sequence"]),
    node("Concat", ["batch", "ones1", "sequence", "minus"], ["wanted"], axis=0),
    node("ConstantOfShape", ["four"], ["ones"], value=of([1])),
    node("Equal", ["wanted", "minus"], ["is_minus"]),
    node("Where", ["is_minus", "ones", "wanted"], ["shape_now"], name="arithmetic"),
    node("Expand", ["mask", "shape_now"], ["c"]),
    node("Where", ["c", "y", "y"], ["out"], name="selection"),
]
OF_TORCHSCRIPT = [
    tensor("x", "float32", ["batch", "sequence", 8]),
    tensor("mask", "bool", ["batch", 1, 1, "sequence"]),
    Y,
]
NUMBERS = {"zero": [0], "one": [1], "ones1": [1], "minus": [-1], "four": [4]}
SUM = [tensor("old", "float32", ["batch", "past"]), tensor("new", "float32", ["batch", "sequence"])]
# TorchScript calls two sizes ``Whereoutput_dim_0``; here they are 1 and 5 at the call.
STATED = [1, "Whereoutput_dim_0"]
UNHEARD = {"opsets": {"": 17, "far.away": 1}}
UNHEARD |= {key: [tensor("z", "float32", ["batch", 4])] for key in ("value_info", "outputs")}
OF_Z = node("Where", ["c", "z", "y"], ["out"])
COMPILED, DISPATCHED, FOLDED = ({"status": each} for each in ("compiled", "dispatched", "folded"))
OPEN = {"cond_shape": ("c_0", "c_1"), "dims": {f"c_{k}": f"dim {k} of input 'c'" for k in (0, 1)}}
OF_INTS = [tensor("c", "bool", [3]), *(tensor(name, "int64", [3]) for name in "xyz")]


def reshape(domain="", shape="s"):
    return node("Reshape", ["z", shape], ["out"], domain=domain)


ARITHMETIC = (
    "Abs Add Cast Concat Div Equal Expand Flatten Gather Identity Max Min Mod Mul Neg Not "
    "ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterElements ScatterND Slice Split "
    "Squeeze Sub Tile Transpose Unsqueeze"
)
CHAIN = [node(made, [read, *"xxxx"], [made]) for read, made in pairwise(["s", *ARITHMETIC.split()])]
READERS = [  # by the input that is a shape
    "ConstantOfShape Range",
    "CenterCropPad Col2Im Expand OneHot Pad Range Reshape Slice Split Tile TopK",
    "Col2Im Range Slice",
    "Resize",
]
BEHIND = [
    ("all arithmetic", "", [*CHAIN, reshape(shape="Unsqueeze")], "shape"),
    *(
        (f"{kind}, {at}", "", [node(kind, [*"zzz"[:at], "s", *"zz"], ["out", "more"])], "shape")
        for at, kinds in enumerate(READERS)
        for kind in kinds.split()
    ),
    ("Reshape", "ai.onnx", [reshape("ai.onnx")], "shape"),
    ("Reshape", "own", [reshape("own")], "compiled"),
    ("Reshape's first input", "", [node("Reshape", ["s", "z"], ["out"])], "compiled"),
    ("Add", "", [node("Add", ["s", "x"], ["t"]), reshape(shape="t")], "shape"),
    ("Add", "own", [node("Add", ["s", "x"], ["t"], domain="own"), reshape(shape="t")], "compiled"),
    ("Neg of one input", "", [node("Sqrt", ["s"], ["t"]), reshape(shape="t")], "compiled"),
]
READ = {
    "all that a table needs": ([WHERE], INPUTS, {}, {
        "workload": Workload.onnx_where(("batch", 1), ("batch", 4), ()),
        "name": "w", "place": "graph#0", "op": "Where-16", "status": "compiled", "reason": "",
        "cond_producer": "graph input", "cond_shape": ("batch", 1), "then_shape": ("batch", 4),
        "else_shape": (), "out_shape": ("batch", 4), "dtype": "float32",
        "dims": {"batch": "batch"}}),
    "no Where": ([node("Neg", ["x"], ["out"])], [X], {}),
    "opset 9": ([WHERE], INPUTS, {"opsets": {"": 9}}, {"op": "Where-9"}),
    "opset 15": ([WHERE], INPUTS, {"opsets": {"": 15}}, {"op": "Where-9"}),
    "opset 16": ([WHERE], INPUTS, {"opsets": {"": 16}}, {"op": "Where-16"}),
    "TorchScript's arithmetic before an Expand": (
        TORCHSCRIPT, OF_TORCHSCRIPT, {"initializer": [ints(*each) for each in NUMBERS.items()]},
        {"status": "shape", "cond_producer": "Equal"},
        {"status": "dispatched", "cond_producer": "Expand", "cond_shape": ("?",) * 4}),
    "shape that ONNX propagates": (
        RESHAPED, [X, tensor("m", "bool", ["n"]), Y],
        {"initializer": [ints("zero", [0]), ints("one", [1])]},
        COMPILED | {"cond_shape": ("batch", 1)}),
    "sum of two sizes": (
        [node("Concat", ["old", "new"], ["x"], axis=1), WHERE],
        [*SUM, tensor("c", "bool", ["batch", "sequence + past"]), Y], {},
        DISPATCHED | {
            "reason": "dim 1 of then is known only at the call",
            "cond_shape": ("batch", "sequence_past"), "then_shape": ("batch", "?"),
            "dims": {"batch": "batch", "sequence_past": "sequence + past"}}),
    "number in quotes is a name": ([WHERE], like(["2"], ["2"]), {},
        {"cond_shape": ("dim_2",), "dims": {"dim_2": "2"}}),
    "number in quotes against a number": ([WHERE], like(["2"], [2]), {}, DISPATCHED),
    "dim that is left open": ([WHERE], like([None, None], []), {}, OPEN),
    "dim of -1": ([WHERE], like([-1, -1], []), {}, OPEN),
    "dim of 0": ([WHERE], like([0, 1], [0, 4]), {}, {"out_shape": (0, 4)}),
    "symbols that only the exporter states": (
        [node("NonZero", ["a"], ["rows"]), node("NonZero", ["b"], ["other"]),
         node("Cast", ["rows"], ["c"], to=TensorProto.BOOL),
         node("Where", ["c", "other", "other"], ["out"])],
        [tensor(name, "float32", ["n"]) for name in "ab"],
        {"value_info": [tensor("c", "bool", STATED), tensor("other", "int64", STATED)]},
        DISPATCHED | {"cond_shape": (1, "?"), "then_shape": (1, "?")}),
    "what the file states inside": (
        [node("Unheard", ["x"], ["z"], domain="far.away"), OF_Z], [tensor("c", "bool", [4]), X, Y],
        UNHEARD, DISPATCHED | {"then_shape": None, "dtype": "float32"}),
    # A file that ONNX's inference has written may have it in two places for two sizes.
    "name that ONNX invented": ([WHERE], like(["unk__0"], ["unk__0"]), {}, DISPATCHED),
    "name that ONNX invents": (
        [node("NonZero", ["x"], ["z"]), node("Where", ["c", "z", "z"], ["out"])], [COND, X], {},
        DISPATCHED | {"then_shape": (2, "?")}),
    "what follows counts more than what is stated": ([node("Neg", ["x"], ["z"]), OF_Z], INPUTS,
        {"value_info": [tensor("z", "float32", [7, 7])]}, {"then_shape": ("batch", 4)}),
    "constants": ([FLAGS, WHERE], [], {"initializer": WEIGHTS}, FOLDED),
    **{f"initializer that is an input of IR version {each}": (
        [FLAGS, WHERE], [tensor("x", "float32", [2])],
        {"initializer": WEIGHTS, "ir_version": each}, FOLDED if each < 4 else COMPILED)
        for each in (1, 3, 4, 5)},
    **{f"{at} of {domain or 'ONNX'} behind a Where": (
        [node("Where", ["c", "x", "y"], ["s"]), *behind], OF_INTS,
        {"opsets": {"": 17, "own": 1}}, {"status": status})
        for at, domain, behind, status in BEHIND},
    "operand of Multinomial": (
        [FLAGS, node("Multinomial", ["y"], ["x"]), node("Where", ["c", "x", "x"], ["out"])], [],
        {"initializer": WEIGHTS[1:]}, DISPATCHED),
    "Where of another domain": ([node("Where", ["c", "x", "y"], ["out"], domain="own")], INPUTS,
        {"opsets": {"": 17, "own": 1}}),
    **{f"operand of {kind}": (
        [constant("c", [True]), constant("y", np.zeros(1, "f4")),
         node(kind, ["y"], ["x"], shape=[4]), WHERE], [], {}, COMPILED)
       for kind in ("Bernoulli", "Dropout", "RandomNormal", "RandomNormalLike", "RandomUniform",
                    "RandomUniformLike")},
    "external data": ([WHERE], [COND, Y], {"initializer": [external("x")]}, {"then_shape": (4,)}),
    "sparse initializer": ([WHERE], [tensor("c", "bool", [8]), Y],
        {"sparse_initializer": [helper.make_sparse_tensor(WEIGHTS[0], of([1, 5]), [8])]},
        COMPILED | {"then_shape": (8,)}),
    "two nodes of one name": (
        [WHERE, node("Where", ["c", "out", "y"], ["again"], name="w")], INPUTS, {},
        {"name": "w", "place": "graph#0"}, {"name": "w", "place": "graph#1"}),
    "nodes out of order": (
        [node("Where", ["n", "x", "y"], ["out"]), node("Not", ["c"], ["n"])], INPUTS, {},
        {"place": "graph#0", "cond_shape": ("batch", 1)}),
    # Two defaults of different lengths have one name; at the call they keep their lengths.
    "dim_param that is two sizes": ([WHERE], like(["n"], ["n"]),
        {"initializer": [of(np.zeros(3, "f4"), "x")], "ir_version": 3},
        DISPATCHED | {"then_shape": (3,)}),
    "operator that is a function": (
        [node("Shrink", ["x"], ["out"], lambd=0.5)], [X], {"opsets": {"": 18}}),
}  # fmt: skip


@mark.parametrize("case", READ)
def test_file_is_read_as_it_would_run(tmp_path, case):
    nodes, inputs, parts, *expected = READ[case]
    check(read(model(nodes, inputs, **parts), tmp_path), *expected)


@mark.parametrize("dtype, opset, said", [("bfloat16", 13, "opset 16"), ("string", 17, "NumPy")])
def test_type_without_kernels_is_refused_with_what_selects_it(tmp_path, dtype, opset, said):
    made = model([WHERE], like(["batch", 1], ["batch", 4], dtype), opsets={"": opset})
    (found,) = read(made, tmp_path)
    assert found.status == "refused"
    assert said in found.reason


HUGE = [tensor("c", "bool", [2**40, 2**40]), Y, tensor("x", "float32", [])]
BROKEN = {
    "shapes that contradict each other": (model([WHERE], like([3], [4])), "graph#0"),
    "cycle": (
        model([node("Not", ["b"], ["a"]), node("Not", ["a"], ["b"]), WHERE], INPUTS), "cycle"),
    "node that reads what it makes": (
        model([node("Not", ["a"], ["a"]), WHERE], INPUTS), "cycle: graph#0"),
    "node that reads what nothing makes": (model([WHERE], [COND, Y]), "'x'"),
    "opset of the future": (model([WHERE], INPUTS, opsets={"": 999}), "opset 999"),
    "opset 8": (model([WHERE], INPUTS, opsets={"": 8}), "opset"),
    "opset 0": (model([WHERE], INPUTS, opsets={"": 0}), "opset"),
    "opset of another domain": (model([WHERE], INPUTS, opsets={"other": 3}), "opset"),
    "cond that is not bool": (model([WHERE], [tensor("c", "uint8", [4]), X, Y]), "expected bool"),
    "type that is that of a malformed node's operator": (
        model([node("IsNaN", ["x", "x"], ["z"]), OF_Z], INPUTS),
        "then is bool and else is float32"),
    "Where with two inputs": (
        model([node("Where", ["c", "x"], ["out"])], [COND, X]), "expected three"),
    "dims of a tensor that no memory holds": (model([WHERE], HUGE), "2^57"),
}  # fmt: skip


@mark.parametrize("case", BROKEN)
def test_file_that_cannot_be_a_model_is_one_clear_line(tmp_path, case):
    check_refused(read, BROKEN[case][0], tmp_path, BROKEN[case][1])
