"""Where by te-select inside ONNX Runtime. The kernels are in C."""

import ctypes
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import te_select
from te_select import ArgumentError, ModelError, ToolchainError
from te_select.numpy_where.kernels import library
from tests.support import ort_models
from tests.support.models import tensor
from tests.support.ort_models import WHERE, feeds, graph, node, one_where, session

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

ours = te_select.onnxruntime
TYPES = {
    "float32": "f4", "uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2", "int32": "i4",
    "int64": "i8", "bool": "?", "float16": "f2", "float64": "f8", "uint32": "u4", "uint64": "u8",
}  # fmt: skip
SHAPE = (3, 5)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return ort_models.library(tmp_path_factory.mktemp("operators"))


@pytest.fixture(autouse=True)
def _kernels_in_c(path, monkeypatch):
    monkeypatch.setattr(library, "whole_file", lambda: path)


def options(*, override=True, **given):
    made = onnxruntime.SessionOptions()
    for name, value in given.items():
        setattr(made, name, value)
    ours.register(made, override=override)
    return made


def run(proto, fed, **given):
    """The output of a session with our library, and how many of our calls it took."""
    made = session(proto, options(**given))
    before = ours.calls()
    (found,) = made.run(None, fed)
    return found, ours.calls() - before


def check(proto, fed, calls=1, **given):
    found, counted = run(proto, fed, **given)
    expected = np.where(*(fed[name] for name in WHERE))
    assert (found.shape, found.tobytes()) == (expected.shape, expected.tobytes())
    assert counted == calls


# ---- models as they are -------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
def test_every_type_of_onnx_runtime_is_selected_by_us(name):
    check(one_where(name), feeds(SHAPE, SHAPE, SHAPE, dtype=TYPES[name]))


def test_bfloat16_is_selected_by_us():
    """NumPy has no such arrays, so the model makes them of float32."""
    to = {"float32": 1, "bfloat16": 16}
    nodes = [node("Cast", [name], [name + "b"], to=to["bfloat16"]) for name in "xy"]
    nodes.append(node("Where", ["c", "xb", "yb"], ["ob"]))
    nodes.append(node("Cast", ["ob"], ["o"], to=to["float32"]))
    made = graph(nodes, one_where().graph.input)
    fed = feeds(SHAPE, SHAPE, SHAPE)
    fed |= {name: fed[name].view("u4") & 0x3F800000 for name in "xy"}
    fed |= {name: fed[name].view("f4") for name in "xy"}
    check(made, fed)


@pytest.mark.parametrize("opset", range(9, 24))
def test_every_opset_that_has_a_where_is_served(opset):
    check(one_where(opsets={"": opset}), feeds(SHAPE, (1, 5), (3, 1)))


@pytest.mark.parametrize(
    "shapes",
    [
        ((), (), ()),
        ((4, 1, 3), (5, 1), (3,)),
        ((1,), (2, 3), ()),
        ((0, 3), (1, 3), ()),
        ((2,) * 12, (1,) * 12, (2, 1)),
    ],
)
def test_shapes_are_broadcast_as_numpy_does(shapes):
    check(one_where(shapes=shapes), feeds(*shapes))
    check(one_where(shapes=(None, None, None)), feeds(*shapes))


def test_shapes_that_do_not_broadcast_fail_the_run_alone():
    made = session(one_where(), options())
    with pytest.raises(Exception, match="the inputs of Where do not broadcast with each other"):
        made.run(None, feeds((3, 5), (3, 4), (3, 5)))
    fed = feeds(SHAPE, SHAPE, SHAPE)
    assert made.run(None, fed)[0].tobytes() == np.where(*fed.values()).tobytes()


def test_more_dims_than_kernels_take_fail_the_run_alone():
    axis = numpy_helper.from_array(np.array([0]), "axis")
    nodes = [node("Unsqueeze", ["x", "axis"], ["u"]), node("Where", ["c", "u", "y"], ["o"])]
    made = graph(nodes, one_where(shapes=(None,) * 3).graph.input, initializer=[axis])
    with pytest.raises(Exception, match="Where has more than 64 dims"):
        run(made, feeds((1,), (1,), (1,)) | {"x": np.ones((1,) * 64, "f4")})


def test_strings_are_selected_by_onnx_runtime():
    made = one_where("string", [[None]] * 3)
    words = {"x": np.array(["a", "long " * 9], object), "y": np.array(["b", "c"], object)}
    found, calls = run(made, {"c": np.array([False, True]), **words})
    assert (found.tolist(), calls) == (["b", "long " * 9], 0)


def test_where_in_bodies_of_if_and_loop_is_ours():
    def body(name, operands, inputs=(), more=()):
        nodes = [node("Where", operands, [f"{name}o"]), *more]
        outs = [tensor(f"{name}o", "float32", None)]
        return helper.make_graph(nodes, name, inputs, outs)

    branches = {
        "then_branch": body("t", ["c", "x", "y"]),
        "else_branch": body("e", ["c", "y", "x"]),
    }
    state = [tensor("i", "int64", []), tensor("k", "bool", []), tensor("s", "float32", None)]
    loop = body("l", ["c", "s", "y"], state, [node("Identity", ["k"], ["k2"])])
    loop.output.insert(0, tensor("k2", "bool", []))
    nodes = [
        node("If", ["flag"], ["z"], **branches),
        node("Loop", ["trips", "", "z"], ["o"], body=loop),
    ]
    inputs = [*one_where().graph.input, tensor("flag", "bool", []), tensor("trips", "int64", [])]
    fed = feeds(SHAPE, SHAPE, SHAPE) | {"flag": np.array(True), "trips": np.array(3)}
    check(graph(nodes, inputs), fed, calls=1 + 3)


def test_shape_of_out_keeps_its_names():
    made = session(one_where(shapes=(["a", 1, "n"], ["b", "n"], [4, 1, 1])), options())
    assert made.get_outputs()[0].shape == [4, "b", "n"]


def test_nothing_is_said_of_the_shape_if_a_rank_is_unknown():
    """A wrong shape would be computed with."""
    for shapes in (([2, 3], None, [2, 3]), ([2, 3], (), [2, 3])):
        inputs = [
            tensor(name, dtype, shape)
            for name, dtype, shape in zip(
                WHERE, ("bool", "float32", "float32"), shapes, strict=True
            )
        ]
        nodes = [node("Where", WHERE, ["w"]), node("Shape", ["w"], ["o"])]
        made = graph(nodes, inputs, tensor("o", "int64", None))
        large = (5, 2, 3) if shapes[1] is None else ()
        found, _ = run(made, feeds((2, 3), large, (2, 3)))
        assert found.tolist() == [*large[:1], 2, 3]


def test_axis_that_may_be_one_of_two_sizes_gets_no_extent():
    nodes = [node("Where", WHERE, ["w"]), node("Shape", ["w"], ["o"])]
    inputs = one_where(shapes=(["a", 3], ["b", 1], [1, 3])).graph.input
    made = graph(nodes, inputs, tensor("o", "int64", None))
    assert run(made, feeds((1, 3), (7, 1), (1, 3)))[0].tolist() == [7, 3]


@pytest.mark.parametrize("side", ["x", "y"])
def test_out_takes_the_place_of_a_side_that_nobody_needs(path, side):
    nodes = [
        node("Neg", [side], ["n"]),
        node("Where", ["n" if name == side else name for name in WHERE], ["w"]),
        node("Neg", ["w"], ["o"]),
    ]
    made = graph(nodes, one_where().graph.input)
    before = ort_models.noted(path, "in_place")
    fed = feeds(SHAPE, SHAPE, SHAPE)
    found, calls = run(made, fed)
    fed[side] = -fed[side]
    assert found.tobytes() == (-np.where(*fed.values())).tobytes()
    assert (calls, ort_models.noted(path, "in_place") - before) == (1, 1)


def test_input_of_the_model_is_not_written(path):
    before = ort_models.noted(path, "in_place")
    fed = feeds(SHAPE, SHAPE, SHAPE)
    kept = {name: value.copy() for name, value in fed.items()}
    check(one_where(), fed)
    assert ort_models.noted(path, "in_place") == before
    assert all(fed[name].tobytes() == kept[name].tobytes() for name in fed)


# ---- sessions -----------------------------------------------------------------------------------

LARGE = (700, 900)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"intra_op_num_threads": 1},
        {"intra_op_num_threads": 3},
        {"enable_cpu_mem_arena": False, "enable_mem_pattern": False},
        {"execution_mode": onnxruntime.ExecutionMode.ORT_PARALLEL},
        {"graph_optimization_level": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL},
    ],
)
def test_large_call_in_every_kind_of_session(given):
    check(one_where(), feeds(LARGE, LARGE, (1, LARGE[1])), **given)


def test_session_is_run_from_eight_threads():
    made = session(one_where(), options())
    fed = [feeds(LARGE, (n + 1, 1, 1), LARGE) for n in range(8)]
    fed = [each | {"x": each["x"][0]} for each in fed]

    def check_runs(each):
        expected = np.where(*each.values()).tobytes()
        return all(made.run(None, each)[0].tobytes() == expected for _ in range(5))

    before = ours.calls()
    with ThreadPoolExecutor(8) as executor:
        assert all(executor.map(check_runs, fed))
    assert ours.calls() - before == 8 * 5


IN_A_PROCESS = """
import os, sys
import onnxruntime
from tests.support.ort_models import feeds, one_where, session
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 2
for path in sys.argv[1:]:
    options.register_custom_ops_library(path)
try:
    made = session(one_where(), options)
except Exception as error:
    print(error)
else:
    made.run(None, feeds((900, 900), (900, 900), (900, 900)))
    names = [open(f"/proc/self/task/{n}/comm").read() for n in os.listdir("/proc/self/task")]
    print("te_select\\n" in names)
"""


def in_a_process(*paths):
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS, *map(str, paths)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_work_is_done_on_the_threads_of_the_session_not_ours(path):
    assert in_a_process(path) == "False"


def test_two_libraries_in_one_session_are_refused(path, tmp_path):
    other = tmp_path / "other.so"
    other.write_bytes(path.read_bytes())
    assert "Domain already set in registry" in in_a_process(path, other)


def test_options_are_registered_once():
    made = options()
    ours.register(made)
    fed = feeds(SHAPE, SHAPE, SHAPE)
    assert (
        session(one_where(), made).run(None, fed)[0].tobytes() == np.where(*fed.values()).tobytes()
    )


@pytest.mark.parametrize("override", [None, 1, 2, "yes"])
def test_override_that_is_no_bool_is_refused(override):
    with pytest.raises(ArgumentError, match=r"override is .*; expected True or False"):
        ours.register(options(), override=override)


def test_what_are_no_session_options_is_refused():
    with pytest.raises(ArgumentError, match="is None; expected an onnxruntime"):
        ours.register(None)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ToolchainError, match="pip install onnxruntime"):
        ours.register(None)


def test_library_that_is_none_is_refused_in_one_line(tmp_path, monkeypatch):
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(library, "whole_file", lambda: broken)
    with pytest.raises(ToolchainError, match=r"onnxruntime 1.* does not take .*broken\.so"):
        options()


@pytest.mark.parametrize("version", ["1.16.3", "1.17.0", "2.0.0", "nonsense"])
def test_another_api_of_onnx_runtime_is_refused(path, version):
    """Nothing but the oldest function of its table is used then, which makes the error."""
    said = []
    status = 7

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    def create_status(_code, message):
        said.append(message.decode())
        return status

    table = (ctypes.c_void_p * 1)(ctypes.cast(create_status, ctypes.c_void_p).value)

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
    def get_api(asked):
        assert asked == 1
        return ctypes.addressof(table)

    @ctypes.CFUNCTYPE(ctypes.c_void_p)
    def get_version():
        return ctypes.cast(text, ctypes.c_void_p).value

    text = ctypes.create_string_buffer(version.encode())
    base = (ctypes.c_void_p * 2)(
        *(ctypes.cast(each, ctypes.c_void_p).value for each in (get_api, get_version))
    )
    register = ctypes.CDLL(str(path)).RegisterCustomOps
    register.restype = ctypes.c_void_p
    assert register(None, base) == status
    wanted = "te_select needs ONNX Runtime 1.18 or newer, of version 1; this is " + version
    assert said == [wanted]


# ---- rewrite ------------------------------------------------------------------------------------


def domains(proto):
    found, graphs = [], [proto.graph, *proto.functions]
    for one in graphs:
        for each in one.node:
            found += [each.domain] * (each.op_type == "Where")
            graphs += [a.g for a in each.attribute if a.HasField("g")]
    return found


def constant(name, values):
    return numpy_helper.from_array(np.array(values), name)


def test_rewritten_node_is_ours_and_selects_the_same():
    made = ours.rewrite(one_where(shapes=(["a", "n"], ["n"], [])))
    assert domains(made) == ["te.select"]
    check(made, feeds(SHAPE, (5,), ()))


def test_rewritten_model_keeps_the_shape_beside_scalars():
    made = ours.rewrite(one_where(shapes=(["a", "n"], ["n"], [])))
    assert session(made, options()).get_outputs()[0].shape == ["a", "n"]


def test_model_that_is_rewritten_stays_as_it_is():
    made = one_where()
    before = made.SerializeToString()
    ours.rewrite(made)
    assert made.SerializeToString() == before


def test_constants_and_strings_are_left_to_onnx_runtime():
    nodes = [
        node("Where", ["kc", "kx", "kx"], ["k"]),
        node("Where", ["c", "w", "w"], ["s"]),
        node("Where", ["c", "x", "k"], ["o"]),
    ]
    inputs = [*one_where(shapes=[["n"]] * 3).graph.input[:2], tensor("w", "string", ["n"])]
    constants = [constant("kc", [True, False]), constant("kx", np.array([1, 2], "f4"))]
    made = ours.rewrite(graph(nodes, inputs, initializer=constants))
    assert domains(made) == ["", "", "te.select"]
    x = np.array([3, 4], "f4")
    fed = {"c": np.array([True, False]), "x": x, "w": np.array(["a", "b"], object)}
    found, calls = run(made, fed, override=False)
    assert (found.tolist(), calls) == ([3, 2], 1)


def test_models_as_they_are_run_what_they_ran_unless_overridden():
    check(one_where(), feeds(SHAPE, SHAPE, SHAPE), calls=0, override=False)
    check(one_where(), feeds(SHAPE, SHAPE, SHAPE), calls=1, override=True)


def test_override_is_one_of_two(path):
    made = onnxruntime.SessionOptions()
    made.add_session_config_entry("te_select.override", "maybe")
    with pytest.raises(Exception, match=r"te_select\.override: expected 0 or 1"):
        made.register_custom_ops_library(str(path))
    ours.register(given := onnxruntime.SessionOptions(), override=False)
    with pytest.raises(ArgumentError, match="registered with override=False before"):
        ours.register(given)


def test_bodies_and_functions_are_rewritten_too():
    out = [tensor("z", "float32", None)]
    branch = helper.make_graph([node("Where", WHERE, ["z"])], "b", [], out)
    masked = helper.make_function(
        "local",
        "masked",
        ["m", "v"],
        ["w"],
        [node("Where", ["m", "v", "v"], ["w"])],
        [helper.make_opsetid("", 17)],
    )
    nodes = [
        node("If", ["flag"], ["i"], then_branch=branch, else_branch=branch),
        node("masked", ["c", "i"], ["o"], domain="local"),
    ]
    inputs = [*one_where().graph.input, tensor("flag", "bool", [])]
    made = ours.rewrite(graph(nodes, inputs, functions=[masked], opsets={"": 17, "local": 1}))
    assert domains(made) == ["te.select"] * 3
    fed = feeds(SHAPE, SHAPE, SHAPE) | {"flag": np.array(False)}
    check(made, fed, calls=2)


def test_rewritten_model_is_taken_in_every_form(tmp_path):
    made = one_where()
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    wanted = ours.rewrite(made)
    for given in (made.SerializeToString(), tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        assert ours.rewrite(given) == wanted
    assert ours.rewrite(wanted) == wanted


def test_rewritten_model_without_the_library_is_refused():
    with pytest.raises(Exception, match=r"te\.select"):
        session(ours.rewrite(one_where()), onnxruntime.SessionOptions())


def test_attributes_that_a_where_has_not_are_dropped():
    made = one_where()
    made.graph.node[0].attribute.append(helper.make_attribute("scalars", 7))
    check(ours.rewrite(made), feeds(SHAPE, SHAPE, SHAPE))


def test_function_in_our_domain_is_refused():
    add = helper.make_function(
        "te.select",
        "Where",
        ["a", "p", "q"],
        ["r"],
        [node("Add", ["p", "q"], ["r"])],
        [helper.make_opsetid("", 17)],
    )
    nodes = [node("Where", WHERE, ["o"], domain="te.select")]
    inputs = list(one_where().graph.input)
    made = graph(nodes, inputs, functions=[add], opsets={"": 17, "te.select": 1})
    with pytest.raises(ModelError, match=r"local function of the domain te\.select"):
        ours.rewrite(made)


@pytest.mark.parametrize("model", [None, 5, ["a"]])
def test_what_can_be_no_model_is_refused(model):
    with pytest.raises(ArgumentError, match=r"expected an onnx\.ModelProto, its bytes"):
        ours.rewrite(model)


def test_what_is_no_model_is_refused():
    with pytest.raises(ModelError, match="no ONNX model"):
        ours.rewrite(b"no model")
