"""Where by te-select inside ONNX Runtime. The kernels are in C."""

import ctypes
import functools
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import hypothesis
import hypothesis.extra.numpy as st_numpy
import numpy as np
import pytest
from hypothesis import strategies as st

import te_select
from te_select import ArgumentError, ToolchainError
from te_select.selecting.kernels import library
from tests.support import ort_models
from tests.support.models import tensor
from tests.support.ort_models import WHERE, feeds, graph, node, one_where, session

onnxruntime = pytest.importorskip("onnxruntime", minversion="1.24")
pytest.importorskip("onnx")
from onnx import helper, numpy_helper  # noqa: E402

ours = te_select.onnxruntime
SHAPE = (3, 5)
shapes_of_three = st_numpy.mutually_broadcastable_shapes(num_shapes=3, max_side=5, max_dims=3)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return ort_models.library(tmp_path_factory.mktemp("provider"))


@pytest.fixture(autouse=True)
def _kernels_in_c(path, monkeypatch):
    """They are registered by the first test of a process, and stay."""
    monkeypatch.setattr(library, "whole_file", lambda: path)


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
    with pytest.raises(Exception, match="have more than 64 dims"):
        run(made, feeds((1,), (1,), (1,)) | {"x": np.ones((1,) * 64, "f4")})


def test_strings_are_selected_by_onnx_runtime():
    made = one_where("string", [[None]] * 3)
    words = {"x": np.array(["a", "long " * 9], object), "y": np.array(["b", "c"], object)}
    found, calls = run(made, {"c": np.array([False, True]), **words})
    assert (found.tolist(), calls) == (["b", "long " * 9], 0)


def body(name, operands, inputs=(), more=(), outputs=()):
    nodes = [node("Where", operands, [f"{name}o"]), *more]
    outs = [*outputs, tensor(f"{name}o", "float32", None)]
    return helper.make_graph(nodes, name, inputs, outs)


def test_where_in_bodies_of_if_and_loop_is_ours():
    then, else_ = body("t", ["c", "x", "y"]), body("e", ["c", "y", "x"])
    state = [tensor("i", "int64", []), tensor("k", "bool", []), tensor("s", "float32", None)]
    goes_on = [node("Identity", ["k"], ["k2"])]
    loop = body("l", ["c", "s", "y"], state, goes_on, [tensor("k2", "bool", [])])
    nodes = [
        node("If", ["flag"], ["z"], then_branch=then, else_branch=else_),
        node("Loop", ["trips", "", "z"], ["o"], body=loop),
    ]
    inputs = [*one_where().graph.input, tensor("flag", "bool", []), tensor("trips", "int64", [])]
    fed = feeds(SHAPE, SHAPE, SHAPE) | {"flag": np.array(True), "trips": np.array(3)}
    check(graph(nodes, inputs), fed, calls=1 + 3)


OF_QUANTIZED = [
    numpy_helper.from_array(np.array(value), name)
    for name, value in (("scale", np.float32(0.5)), ("zero", np.uint8(3)))
]


def quantized(side):
    return [
        node("DequantizeLinear", [f"{side}q", "scale", "zero"], [side]),
        tensor(f"{side}q", "uint8", ["n"]),
    ]


def test_where_between_quantized_tensors_is_fused_with_them(tmp_path):
    (of_x, x), (of_y, y) = quantized("x"), quantized("y")
    where = node("Where", WHERE, ["w"])
    again = node("QuantizeLinear", ["w", "scale", "zero"], ["o"])
    inputs = [tensor("c", "bool", ["n"]), x, y]
    out = tensor("o", "uint8", None)
    made = graph([of_x, of_y, where, again], inputs, out, initializer=OF_QUANTIZED)
    options()  # the library is registered
    devices = {each.ep_name: each for each in onnxruntime.get_ep_devices()}
    both = devices[ours.OURS], devices[ours.OF_CPU]
    found = ort_models.optimized(made.SerializeToString(), tmp_path, *both)
    assert [each.op_type for each in found.graph.node] == ["QLinearWhere"]


def test_where_of_one_dequantized_side_is_ours():
    of_x, x = quantized("x")
    inputs = [tensor("c", "bool", ["n"]), x, tensor("y", "float32", ["n"])]
    made = graph([of_x, node("Where", WHERE, ["o"])], inputs, initializer=OF_QUANTIZED)
    fed = feeds((4,), (4,), (4,))
    q = np.array([0, 3, 200, 255], np.uint8)
    found, calls = run(made, {"c": fed["c"], "xq": q, "y": fed["y"]})
    expected = np.where(fed["c"], (q.astype("f4") - 3) * np.float32(0.5), fed["y"])
    assert (found.tobytes(), calls) == (expected.tobytes(), 1)


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
        pytest.skip("this release takes no names of plug-ins")
    model = one_where().SerializeToString()
    check_session(onnxruntime.InferenceSession(model, providers=ours.providers()))


@pytest.mark.parametrize("given", [None, "options", 5])
def test_what_are_no_session_options_is_refused(given):
    with pytest.raises(ArgumentError, match=r"session_options is .*; expected an onnxruntime"):
        ours.register(given)


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    for function in (lambda: ours.register(None), ours.providers):
        with pytest.raises(ToolchainError, match="pip install onnxruntime"):
            function()
    assert ours.calls() == 0


@pytest.mark.parametrize("version", ["1.18.0", "1.23.2"])
def test_older_release_is_refused(monkeypatch, version):
    monkeypatch.setattr(onnxruntime, "__version__", version)
    with pytest.raises(ToolchainError, match=rf"onnxruntime {version} .*expected 1\.24 or newer"):
        options()


@pytest.mark.parametrize("version", ["1.24.0", "1.24.4", "1.100.0", "2.0.0"])
def test_release_that_takes_plugins_is_used(monkeypatch, version):
    monkeypatch.setattr(onnxruntime, "__version__", version)
    assert ours._onnxruntime() is onnxruntime


def test_release_that_takes_no_names_of_plugins_is_refused(monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [ours.OF_CPU])
    with pytest.raises(ToolchainError, match=r"expected 1\.25 or newer, or te_select\.onnxrunt"):
        ours.providers()


@pytest.mark.parametrize("version", ["1.16.3", "1.23.2", "1.24.0", "2.0.0", "nonsense"])
def test_another_api_of_onnx_runtime_is_refused(path, version):
    """Nothing but the oldest function of its table is used then, which makes the error.

    1.24.0 is asked for its table, which it lacks here.
    """
    said = []
    tables = set()
    status = 7

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
    def create_status(_code, message):
        said.append(message.decode())
        return status

    table = (ctypes.c_void_p * 1)(ctypes.cast(create_status, ctypes.c_void_p).value)

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
    def get_api(asked):
        tables.add(asked)
        return ctypes.addressof(table) if asked == 1 else None

    @ctypes.CFUNCTYPE(ctypes.c_void_p)
    def get_version():
        return ctypes.cast(text, ctypes.c_void_p).value

    text = ctypes.create_string_buffer(version.encode())
    base = (ctypes.c_void_p * 2)(
        *(ctypes.cast(each, ctypes.c_void_p).value for each in (get_api, get_version))
    )
    create = ctypes.CDLL(str(path)).CreateEpFactories
    create.restype = ctypes.c_void_p
    factory = ctypes.c_void_p()
    count = ctypes.c_size_t(9)
    made = create(
        b"name", base, None, ctypes.byref(factory), ctypes.c_size_t(4), ctypes.byref(count)
    )
    assert (made, factory.value, count.value) == (status, None, 0)
    assert tables == ({1, 24} if version == "1.24.0" else {1})
    assert said == ["te_select needs ONNX Runtime 1.24 or newer, of version 1; this is " + version]


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
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
