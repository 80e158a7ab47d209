"""Where by te-select inside ONNX Runtime. The kernels are in C."""

import functools
import math
import sys
from ctypes import (
    CDLL,
    CFUNCTYPE,
    addressof,
    byref,
    c_char_p,
    c_int,
    c_size_t,
    c_uint32,
    c_void_p,
    cast,
    create_string_buffer,
)

import hypothesis
import hypothesis.extra.numpy as st_numpy
import numpy as np
from hypothesis import strategies as st
from pytest import fixture, importorskip, mark, raises, skip

import te_select
from te_select import ArgumentError, ToolchainError
from tests.support.models import tensor
from tests.support.ort_models import WHERE, feeds, graph, library, node, one_where, session

onnxruntime = importorskip("onnxruntime", minversion="1.24")
importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

ours = te_select.onnxruntime
SHAPE = (3, 5)
shapes_of_three = st_numpy.mutually_broadcastable_shapes(num_shapes=3, max_side=5, max_dims=3)


@fixture
def path():
    return library()


@fixture(autouse=True)
def _kernels_in_c(path, monkeypatch):
    """They are registered by the first test of a process, and stay."""
    monkeypatch.setattr("te_select.selecting.kernels.library.whole_file", lambda: path)


def options(**given):
    made = onnxruntime.SessionOptions()
    for name, value in given.items():
        setattr(made, name, value)
    ours.register(made)
    return made


def run(proto, fed, **given):
    """The output of a session with our provider, and how many of our calls it took."""
    made = session(proto, options(**given))
    before = ours.calls()
    (found,) = made.run(None, fed)
    return found, ours.calls() - before


def check(proto, fed, calls=1, **given):
    found, counted = run(proto, fed, **given)
    expected = np.where(*(fed[name] for name in WHERE))
    assert (found.shape, found.tobytes()) == (expected.shape, expected.tobytes())
    assert counted == calls


@functools.cache
def sessions_of(dtype):
    """ONNX Runtime's own, and one with our provider."""
    alone = onnxruntime.SessionOptions()
    made = one_where(dtype, (None,) * 3)
    return session(made, alone), session(made, options())


def test_more_dims_than_kernels_take_fail_the_run_alone():
    axis = numpy_helper.from_array(np.array([0]), "axis")
    nodes = [node("Unsqueeze", ["x", "axis"], ["u"]), node("Where", ["c", "u", "y"], ["o"])]
    made = graph(nodes, one_where(shapes=(None,) * 3).graph.input, initializer=[axis])
    with raises(Exception, match="have more than 64 dims"):
        run(made, feeds((1,), (1,), (1,)) | {"x": np.ones((1,) * 64, "f4")})


def test_strings_are_selected_by_onnx_runtime():
    made = one_where("string", [[None]] * 3)
    words = {"x": np.array(["a", "long " * 9], object), "y": np.array(["b", "c"], object)}
    found, calls = run(made, {"c": np.array([False, True]), **words})
    assert (found.tolist(), calls) == (["b", "long " * 9], 0)


TYPES = "bool int8 uint8 int16 uint16 float16 int32 uint32 float32 int64 uint64 float64"


@mark.parametrize("dtype", TYPES.split())
def test_elements_of_every_type_are_selected(dtype):
    x = np.eye(*SHAPE, dtype=dtype)
    check(one_where(dtype), {"c": x > 0, "x": x, "y": x[::-1].copy()})


def test_where_in_bodies_of_a_node_is_ours():
    branches = {
        f"{name}_branch": helper.make_graph(
            [node("Where", operands, [name])], name, [], [tensor(name, "float32", None)]
        )
        for name, operands in (("then", ["c", "x", "y"]), ("else", ["c", "y", "x"]))
    }
    inputs = [*one_where().graph.input, tensor("flag", "bool", [])]
    made = graph([node("If", ["flag"], ["o"], **branches)], inputs)
    check(made, feeds(SHAPE, SHAPE, SHAPE) | {"flag": np.array(True)})


OF_QUANTIZED = [
    numpy_helper.from_array(np.array(value), name)
    for name, value in (("scale", np.float32(0.5)), ("zero", np.uint8(3)))
]


@mark.parametrize("dequantized, calls", [("xy", 0), ("x", 1), ("y", 1)])
def test_where_between_quantized_tensors_is_left_to_be_fused(dequantized, calls):
    nodes = []
    inputs = [tensor("c", "bool", ["n"])]
    fed = {"c": np.array([True, False] * 2)}
    for side in "xy":
        if side in dequantized:
            nodes.append(node("DequantizeLinear", [f"{side}q", "scale", "zero"], [side]))
        name, dtype = (f"{side}q", "uint8") if side in dequantized else (side, "float32")
        inputs.append(tensor(name, dtype, ["n"]))
        fed[name] = np.array([0, 3, 200, 255], dtype)
    nodes.append(node("Where", WHERE, ["w"]))
    nodes.append(node("QuantizeLinear", ["w", "scale", "zero"], ["o"]))
    made = graph(nodes, inputs, tensor("o", "uint8", None), initializer=OF_QUANTIZED)
    (expected,) = session(made, onnxruntime.SessionOptions()).run(None, fed)
    found, counted = run(made, fed)
    assert (found.tobytes(), counted) == (expected.tobytes(), calls)


LARGE = (700, 900)


@mark.parametrize(
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


def check_session(made, counted=1):
    """It selects, and so many of its calls are ours; None if that is up to ONNX Runtime."""
    before = ours.calls()
    fed = feeds(SHAPE, SHAPE, SHAPE)
    assert made.run(None, fed)[0].tobytes() == np.where(*fed.values()).tobytes()
    assert counted in (None, ours.calls() - before)


def test_options_are_registered_once_and_make_several_sessions():
    made = options()
    ours.register(made)
    sessions = [session(one_where(), made) for _ in range(2)]
    assert [each.get_providers() for each in sessions] == [[ours.OURS, ours.OF_CPU]] * 2
    for each in sessions:
        check_session(each)


def test_provider_is_named_beside_the_cpu():
    options()  # the library is registered
    if ours.OURS not in onnxruntime.get_available_providers():
        skip("this release takes no names of plug-ins")
    model = one_where().SerializeToString()
    check_session(onnxruntime.InferenceSession(model, providers=ours.providers()))


@mark.parametrize("given", [None, "options", 5])
def test_what_are_no_session_options_is_refused(given):
    with raises(ArgumentError, match=r"session_options is .*; expected an onnxruntime"):
        ours.register(given)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for function in (lambda: ours.register(None), ours.providers):
        with raises(ToolchainError, match="pip install onnxruntime"):
            function()
    assert ours.calls() == 0


@mark.parametrize("version", ["1.18.0", "1.23.2", "1.24.0", "1.100.0", "2.0.0"])
def test_release_before_1_24_is_refused(monkeypatch, version):
    monkeypatch.setattr(onnxruntime, "__version__", version)
    if version in ("1.18.0", "1.23.2"):
        with raises(ToolchainError, match=rf"onnxruntime {version} .*expected 1\.24 or new"):
            options()
        monkeypatch.delattr(onnxruntime, "get_ep_devices")
        assert ours.calls() == 0
    else:
        assert ours._onnxruntime() is onnxruntime


def test_release_that_takes_no_names_of_plugins_is_refused(monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [ours.OF_CPU])
    with raises(ToolchainError, match=r"expected 1\.25 or newer, or te_select\.onnxrunt"):
        ours.providers()


@mark.parametrize("version", ["1.16.3", "1.23.2", "1.24.0", "2.24.0", "nonsense"])
def test_another_api_of_onnx_runtime_is_refused(path, version):
    """Nothing but the oldest function of its table is used then, which makes the error.

    1.24.0 is asked for its table, which it lacks here.
    """
    said = []
    tables = set()
    status = 7

    @CFUNCTYPE(c_void_p, c_int, c_char_p)
    def create_status(_code, message):
        said.append(message.decode())
        return status

    table = (c_void_p * 1)(cast(create_status, c_void_p).value)

    @CFUNCTYPE(c_void_p, c_uint32)
    def get_api(asked):
        tables.add(asked)
        return addressof(table) if asked == 1 else None

    @CFUNCTYPE(c_void_p)
    def get_version():
        return cast(text, c_void_p).value

    text = create_string_buffer(version.encode())
    base = (c_void_p * 2)(*(cast(each, c_void_p).value for each in (get_api, get_version)))
    create = CDLL(str(path)).CreateEpFactories
    create.restype = c_void_p
    factory = c_void_p()
    count = c_size_t(9)
    made = create(b"name", base, None, byref(factory), c_size_t(4), byref(count))
    assert (made, factory.value, count.value) == (status, None, 0)
    assert tables == ({1, 24} if version == "1.24.0" else {1})
    assert said == ["te_select needs ONNX Runtime 1.24 or newer, of version 1; this is " + version]


@mark.parametrize("dtype", ["uint8", "float32", "int64"])
@hypothesis.given(data=st.data())
def test_output_bound_over_inputs_is_that_of_onnx_runtime(dtype, data):
    shapes = data.draw(shapes_of_three)
    size = np.dtype(dtype).itemsize
    out = shapes.result_shape
    starts = st.integers(0, 24)
    places = [
        (data.draw(starts) * (name == "c" or size), given)
        for name, given in zip((*WHERE, "o"), (*shapes.input_shapes, out), strict=True)
    ]
    bits = np.random.default_rng(data.draw(starts)).integers(0, 256, 4096, "u1")
    bits[::2] &= 1
    both = []
    for made in sessions_of(dtype):
        memory = bits.copy()
        start, given = places[0]
        cond = memory[start : start + math.prod(given)]
        cond[:] &= 1  # the bytes of bools
        binding = made.io_binding()
        for name, (start, given) in zip((*WHERE, "o"), places, strict=True):
            bind = binding.bind_output if name == "o" else binding.bind_input
            of = np.dtype(bool if name == "c" else dtype)
            bind(name, "cpu", 0, of, given, memory.ctypes.data + start)
        made.run_with_iobinding(binding)
        both.append(memory.tobytes())
    assert both[0] == both[1]
