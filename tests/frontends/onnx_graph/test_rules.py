"""Shapes, types and values by the rules, compared with ONNX's own results."""

import numpy as np
import pytest

from te_select.frontends.symbolic.expressions import UNKNOWN, Expression
from tests.support.models import ints, model, tensor, value_of
from tests.support.onnx_cases import node_cases

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from te_select.frontends.onnx_graph.interpreter import Interpreter  # noqa: E402
from te_select.frontends.onnx_graph.values import in_range  # noqa: E402


def walked(made):
    """What is known about the tensors of the main graph."""
    walk = Interpreter(made)
    walk.run()
    return walk.main.tensors


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
    del named.graph.value_info[:]
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
        for dim, size in zip(tensors[name].shape or (), value.shape, strict=False):
            if isinstance(dim, Expression):
                sizes.setdefault(dim.only_atom.key, size)
    for name, value in results.items():
        known = tensors[name]
        if known.dtype not in (None, "string", str(value.dtype)):
            yield name, known.dtype, value.dtype
        if known.shape is None:
            continue
        if len(known.shape) != value.ndim:
            yield name, known.shape, value.shape
            continue
        for dim, size in zip(known.shape, value.shape, strict=True):
            said = value_of(dim, sizes)
            if said is None and dim.only_atom is not None and not dim.only_atom.function:
                sizes[dim.only_atom.key] = size
            elif said not in (None, size):
                yield name, str(dim), value.shape
        values = known.values.flat if known.values is not None else ()
        for said, is_ in zip(values, value.flat, strict=False):
            if isinstance(said, int | Expression) and value_of(said, sizes) not in (None, is_):
                yield name, str(said), is_


@pytest.mark.slow
def test_rules_agree_with_every_node_test_of_onnx():
    """Dims are ints, names by size, or different names for all."""
    compared = 0
    ways = ("ints", "by size", "all unlike")
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
        found = list(contradictions(walked(made), feeds, results))
        assert not found, (case.name, dims, found)
        compared += len(results)
    assert compared > 4500


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, **attributes)


def pick(output, *indices):
    """Some elements of the shape of x."""
    return node("Gather", ["shape", f"at_{output}"], [output]), ints(f"at_{output}", indices)


ARITHMETIC = {
    "product": [node("ReduceProd", ["shape"], ["out"], keepdims=0)],
    "sum": [node("ReduceSum", ["shape", "zero"], ["out"])],
    "largest": [node("ReduceMax", ["shape"], ["out"])],
    "cut": [node("Min", ["shape", "three"], ["out"])],
    "at_least": [node("Max", ["shape", "three"], ["out"])],
    "add": [node("Add", ["shape", "three"], ["out"])],
    "subtract": [node("Sub", ["shape", "three"], ["out"])],
    "negate": [node("Neg", ["shape"], ["out"])],
    "absolute": [node("Sub", ["shape", "three"], ["d"]), node("Abs", ["d"], ["out"])],
    "halves": [node("Div", ["shape", "two"], ["out"])],
    "rest": [node("Mod", ["shape", "two"], ["out"])],
    "rest_of_negative": [node("Neg", ["shape"], ["n"]), node("Mod", ["n", "two"], ["out"], fmod=1)],
    "quotient_of_negative": [node("Neg", ["shape"], ["n"]), node("Div", ["n", "two"], ["out"])],
    "compare": [node("Equal", ["shape", "minus"], ["b"]), node("Not", ["b"], ["out"])],
    "less": [node("Less", ["shape", "three"], ["out"])],
    "not_less": [node("GreaterOrEqual", ["shape", "zero"], ["out"])],
    "or": [
        node("Greater", ["shape", "minus"], ["p"]),
        node("LessOrEqual", ["shape", "three"], ["q"]),
        node("Or", ["p", "q"], ["out"]),
    ],
    "or_open": [
        node("Less", ["shape", "zero"], ["p"]),
        node("Less", ["shape", "three"], ["q"]),
        node("Or", ["p", "q"], ["out"]),
    ],
    "and": [
        node("Less", ["shape", "zero"], ["p"]),
        node("Less", ["shape", "three"], ["q"]),
        node("And", ["p", "q"], ["out"]),
    ],
    "where": [
        node("Equal", ["shape", "minus"], ["b"]),
        node("Where", ["b", "two", "shape"], ["out"]),
    ],
    "slice": [node("Slice", ["shape", "one", "three"], ["out"])],
    "backwards": [node("Slice", ["shape", "minus", "far", "zero", "minus"], ["out"])],
    "concat": [node("Concat", ["shape", "two", "shape"], ["out"], axis=0)],
    "unsqueeze": [node("Unsqueeze", ["shape", "zero"], ["u"]), node("Squeeze", ["u"], ["out"])],
    "reshape": [node("Reshape", ["shape", "three_one"], ["r"]), node("Transpose", ["r"], ["out"])],
    "split": [node("Split", ["shape", "one_two"], ["first", "out"])],
    "tile": [node("Tile", ["shape", "two"], ["out"])],
    "expand": [node("Expand", ["shape", "two_three"], ["out"])],
    "scatter": [node("ScatterND", ["shape", "zero_zero", "two"], ["out"])],
    "cast": [
        node("Cast", ["shape"], ["s"], to=TensorProto.INT32),
        node("Mul", ["s", "s"], ["out"]),
    ],
    "to_bool": [node("Cast", ["shape"], ["out"], to=TensorProto.BOOL)],
    "range": [node("Size", ["three"], ["n"]), node("Range", ["nought", "n", "step"], ["out"])],
    "filled": [
        node("ConstantOfShape", ["three"], ["out"], value=numpy_helper.from_array(np.array([7])))
    ],
    "part_of_shape": [node("Shape", ["x"], ["out"], start=-2, end=9)],
    "identity": [node("Identity", ["shape"], ["out"])],
}
KNOWN = {
    "zero": [0],
    "one": [1],
    "two": [2],
    "three": [3],
    "minus": [-1],
    "far": [-(2**63)],
    "one_two": [1, 2],
    "two_three": [2, 3],
    "three_one": [3, 1],
}


OPEN = (  # at any size
    *("rest_of_negative", "quotient_of_negative", "less", "or_open", "absolute", "to_bool"),
)


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("sizes", [(4, 7, 2), (1, 1, 1), (0, 5, 3)])
def test_values_agree_with_what_onnx_computes(name, sizes):
    parts = [ints(key, value) for key, value in KNOWN.items()]
    parts += [
        helper.make_tensor("nought", TensorProto.INT64, [], [0]),
        helper.make_tensor("step", TensorProto.INT64, [], [1]),
        helper.make_tensor("zero_zero", TensorProto.INT64, [1, 1], [0]),
    ]
    inputs = [tensor("x", "float32", ["a", "b", "c"])]
    nodes = [node("Shape", ["x"], ["shape"]), *ARITHMETIC[name]]
    made = model(nodes, inputs, initializer=parts, outputs=[tensor("out", "int64", None)])
    known = walked(made)["out"]
    feeds = {"x": np.zeros(sizes, np.float32)}
    (want,) = ReferenceEvaluator(made).run(["out"], feeds)
    assert (known.values is None) == (name in OPEN)
    assert not list(contradictions(walked(made), feeds, {"out": np.asarray(want)}))


@pytest.mark.parametrize("op", ["Div", "Add", "Sub", "Mul", "Min", "Max"])
def test_ints_of_any_sign_are_computed_as_onnx_does(op):
    """A quotient is rounded towards zero."""
    parts = [ints("p", [-7, 7, -7, 7, -6]), ints("q", [2, -2, -2, 2, 3])]
    outputs = [tensor("out", "int64", [5])]
    made = model([node(op, ["p", "q"], ["out"])], [], initializer=parts, outputs=outputs)
    (want,) = ReferenceEvaluator(made).run(["out"], {})
    assert walked(made)["out"].values.tolist() == want.tolist()


def test_last_of_several_parts_is_the_short_one():
    nodes = [node("Split", ["p"], ["out", "rest"], num_outputs=2)]
    parts, outputs = [ints("p", [4, 5, 6])], [tensor("out", "int64", [2])]
    made = model(nodes, [], initializer=parts, outputs=outputs, opsets={"": 18})
    (want,) = ReferenceEvaluator(made).run(["out"], {})
    assert walked(made)["out"].values.tolist() == want.tolist() == [4, 5]


def test_fraction_that_becomes_an_int_is_cut_off():
    nodes = [
        node("Constant", [], ["x"], value_floats=[2.7, -2.7, 3.0]),
        node("Cast", ["x"], ["out"], to=TensorProto.INT64),
    ]
    made = model(nodes, [], outputs=[tensor("out", "int64", [3])])
    assert walked(made)["out"].values.tolist() == [2, -2, 3]


SHAPES = {  # of x[a, b, c]: the nodes that make "out", and its dims
    "every second one": (
        [node("Slice", ["x", "nought", "end", "nought", "two"], ["out"])],
        ["(a + 1)//2", "b", "c"],
    ),
    "to the end": ([node("Slice", ["x", "nought", "end", "nought"], ["out"])], ["a", "b", "c"]),
    "behind the first two": (
        [node("Slice", ["x", "two", "end", "nought"], ["out"])],
        ["max(0, a - min(2, a))", "b", "c"],
    ),
    "nothing between": (
        [node("Slice", ["x", "two", "one", "nought"], ["out"])],
        ["max(0, min(1, a) - min(2, a))", "b", "c"],
    ),
    "padded along one axis": (
        [node("Pad", ["x", "one_two", "", "one"], ["out"])],
        ["a", "b + 3", "c"],
    ),
    "padded on one side": (
        [node("AveragePool", ["x"], ["out"], kernel_shape=[3], pads=[0, 2], strides=[1])],
        ["a", "b", "c"],
    ),
    "the sum of all": ([node("ReduceSum", ["x"], ["out"])], ["1", "1", "1"]),
    "the sum of all, without axes": ([node("ReduceSum", ["x"], ["out"], keepdims=0)], []),
    "the sum of nothing": (
        [node("ReduceSum", ["x"], ["out"], noop_with_empty_axes=1)],
        ["a", "b", "c"],
    ),
    "the sum along one axis": (
        [node("ReduceSum", ["x", "one"], ["out"], keepdims=0, noop_with_empty_axes=1)],
        ["a", "c"],
    ),
    "the first of two parts": (
        [node("Split", ["x"], ["out", "rest"], num_outputs=2, axis=2)],
        ["a", "b", "(c + 1)//2"],
    ),
    "the last of two parts": (
        [node("Split", ["x"], ["first", "out"], num_outputs=2, axis=2)],
        ["a", "b", "-((c + 1)//2) + c"],
    ),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("sizes", [(4, 7, 5), (1, 1, 3), (5, 2, 4)])
def test_shapes_of_named_dims_are_those_that_onnx_computes(name, sizes):
    nodes, dims = SHAPES[name]
    parts = [ints("nought", [0]), ints("one", [1]), ints("two", [2]), ints("one_two", [1, 2])]
    parts.append(ints("end", [2**31 - 1]))
    outputs = [tensor("out", "float32", None)]
    inputs = [tensor("x", "float32", ["a", "b", "c"])]
    made = model(nodes, inputs, initializer=parts, outputs=outputs, opsets={"": 18})
    feeds = {"x": np.zeros(sizes, np.float32)}
    (want,) = ReferenceEvaluator(made).run(["out"], feeds)
    assert not list(contradictions(walked(made), feeds, {"out": want}))
    assert [str(dim) for dim in walked(made)["out"].shape] == dims


def test_dim_of_1_expanded_to_the_unknown_may_be_any_size():
    inputs = [tensor("x", "float32", [1, 5, "c"]), tensor("sizes", "int64", [3])]
    dims = walked(model([node("Expand", ["x", "sizes"], ["out"])], inputs))["out"].shape
    assert isinstance(dims[0], Expression)
    assert dims[1] == 5
    assert isinstance(dims[2], Expression)
    assert str(dims[2]) != "c"


@pytest.mark.parametrize(
    ("scale", "size"), [(0.5, 2), (0.6, None), (0.7, 3), (1.0, 5), (2.0, 10), (1.25, 6), (2.5, 12)]
)
def test_resized_dim_is_known_where_all_libraries_round_alike(scale, size):
    """As float32, 0.6 is a little more than that, and so 5 times 0.6 may be 3 or 2."""
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [2], [1.0, scale])
    made = model(
        [node("Resize", ["x", "", "scales"], ["out"])],
        [tensor("x", "float32", ["a", 5])],
        initializer=[scales],
    )
    rows, found = walked(made)["out"].shape
    assert str(rows) == "a"
    assert isinstance(found, Expression) if size is None else found == size


def test_size_stated_inside_stays_equal_to_the_inputs():
    """An int that the exporter saw in one run does not part two tensors of one size."""
    inputs = [tensor("x", "float32", [None, 4])]
    stated = [tensor("y", "float32", [5, 4])]
    made = model([node("Relu", ["x"], ["y"])], inputs, value_info=stated)
    tensors = walked(made)
    assert tensors["y"].shape == tensors["x"].shape
    assert isinstance(tensors["y"].shape[0], Expression)


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="Attention came with opset 23")
def test_named_dim_that_onnx_takes_for_0_is_not_known():
    """ONNX divides the width of value by the number of heads, though it is only a name."""
    heads = {"q_num_heads": 3, "kv_num_heads": 3}
    inputs = [tensor(name, "float32", ["batch", name, "width"]) for name in "qkv"]
    nodes = [node("Attention", ["q", "k", "v"], ["out"], **heads)]
    batch, length, width = walked(model(nodes, inputs, opsets={"": 23}))["out"].shape
    assert (str(batch), str(length)) == ("batch", "q")
    assert isinstance(width, Expression)


def test_index_of_einsum_with_two_names_is_neither_of_them():
    """Each of the two may be 1 at the call."""
    inputs = [tensor("p", "float32", ["b", "i"]), tensor("q", "float32", ["c", "j"])]
    nodes = [node("Einsum", ["p", "q"], ["out"], equation="bi,bj->bij")]
    first, *others = walked(model(nodes, inputs))["out"].shape
    assert str(first) not in ("b", "c")
    assert [str(dim) for dim in others] == ["i", "j"]


def test_constant_that_is_no_tensor_says_nothing():
    nodes = [node("Constant", [], ["out"], value=3)]
    assert walked(model(nodes, []))["out"].shape is None


def test_arithmetic_past_the_element_type_is_not_followed():
    nodes = [node("Mul", ["big", "big"], ["out"])]
    assert walked(model(nodes, [], initializer=[ints("big", [2**40])]))["out"].values is None


@pytest.mark.parametrize(
    "bad",
    [
        node("Transpose", ["x"], ["out"], perm=[0, 0, 9]),
        node("Gather", ["x", "two"], ["out"], axis=7),
        node("GatherND", ["x", "two"], ["out"], batch_dims=-(2**31)),
        node("Reshape", ["x", "far"], ["out"]),
        node("Squeeze", ["x", "far"], ["out"]),
        node("Concat", ["x", "two"], ["out"], axis=2**40),
        node("Conv", ["x", "x"], ["out"], strides=[0], kernel_shape=[2**60]),
        node("MaxPool", ["x"], ["out"]),
        node("Split", ["x"], ["out", "p", "q"], num_outputs=2),
        node("Einsum", ["x"], ["out"], equation="ab->c"),
        node("LayerNormalization", ["x", "x"], ["out"], axis=2**31),
        node("Expand", ["x"], ["out"]),
        node("TopK", ["x", "two"], ["out"], axis=-9),
        node("LSTM", ["x"], ["out"]),
    ],
    ids=lambda bad: bad.op_type,
)
def test_malformed_node_says_nothing_of_its_output(bad):
    parts = [ints("two", [2]), ints("far", [-(2**63), 2**63 - 1])]
    made = model([bad], [tensor("x", "float32", ["a", "b", "c"])], initializer=parts)
    assert walked(made)["out"].dtype in (None, "float32")


def test_dim_that_is_cropped_before_a_resize_is_not_known():
    scales = helper.make_tensor("scales", TensorProto.FLOAT, [1], [2.0])
    crops = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    made = model(
        [node("Resize", ["x", "roi", "scales"], ["out"], **crops)],
        [tensor("x", "float32", [5]), tensor("roi", "float32", [2])],
        initializer=[scales],
    )
    assert isinstance(walked(made)["out"].shape[0], Expression)


@pytest.mark.parametrize("value", [-129, -128, 127, 128])
def test_value_that_its_type_cannot_hold_is_not_known(value):
    kept = in_range(np.array([value, 0], object), "int8")
    assert kept.tolist() == [value if -128 <= value <= 127 else UNKNOWN, 0]
