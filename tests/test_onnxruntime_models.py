"""Models of ``TE_SELECT_MODELS`` in ONNX Runtime, with Where by te-select and without."""

import json

import numpy as np
from pytest import fixture, importorskip, skip

import te_select
from tests.support.models import OF_CORPUS, corpus

pytestmark = OF_CORPUS
onnxruntime = importorskip("onnxruntime", minversion="1.24")
onnx = importorskip("onnx")

FOLDER, INDEX = corpus()
FILES = [entry for entry in INDEX if entry["kind"] == "onnx"]
NOT_LOADED = 4  # by ONNX Runtime itself
ROUNDED = ("onnx/llama/llama_f16_dy.onnx",)
"""Files of which ONNX Runtime keeps what is selected in float32, and ours in float16."""


@fixture(scope="module")
def devices(every_kernel):
    """Ours, with all kernels, whatever library another test has registered; and the CPU's."""
    onnxruntime.register_execution_provider_library("every kernel", str(every_kernel))
    found = onnxruntime.get_ep_devices()
    ours = [each for each in found if each.ep_metadata.get("library_path") == str(every_kernel)]
    return [*ours, *(each for each in found if each.ep_name == te_select.onnxruntime.OF_CPU)]


def session(model, devices=(), **given):
    """A session of the file of a model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for name, value in given.items():
        setattr(options, name, value)
    for device in devices:
        options.add_provider_for_devices([device], {})
    return onnxruntime.InferenceSession(str(model), options)


def feeds(run):
    """Values for the inputs of a run; ints are small, because many are indices."""
    rng = np.random.default_rng(0)
    made = {}
    for name, about in run["feeds"].items():
        shape, elem = about["shape"], about["elem"]
        if elem == "string":
            made[name] = rng.choice(["a", "b"], shape).astype(object)
        elif elem == "bool":
            made[name] = np.asarray(rng.integers(0, 2, shape), bool)
        elif elem.startswith(("int", "uint")):
            made[name] = np.asarray(rng.integers(0, 2, shape), elem)
        else:
            made[name] = np.asarray(rng.random(shape), elem)
    return made


PLAIN = {"graph_optimization_level": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL}


def outputs(made, run):
    """The bits of all outputs; the error if there is one."""
    try:
        found = made.run(None, feeds(run))
    except Exception as error:
        return type(error).__name__
    return [
        (str(each.dtype), each.shape, each.tolist() if each.dtype == object else each.tobytes())
        if isinstance(each, np.ndarray)
        else repr(each)
        for each in found
    ]


def profiled(model, run, folder):
    """What a model gives without our library, and how many Where but of strings it ran."""
    made = session(
        model, enable_profiling=True, profile_file_prefix=str(folder / "profile"), **PLAIN
    )
    found = outputs(made, run)
    with open(made.end_profiling()) as file:  # noqa: PTH123
        events = json.load(file)
    return found, sum(
        event.get("args", {}).get("op_name") == "Where"
        and event["name"].endswith("kernel_time")
        and "string" not in json.dumps(event["args"].get("input_type_shape", ""))
        for event in events
    )


def loads(model):
    try:
        session(model)
    except Exception:
        return False
    return True


@fixture(params=FILES, ids=lambda entry: entry["file"])
def entry(request):
    if not loads(FOLDER / request.param["file"]):
        skip("ONNX Runtime itself does not load it")
    return request.param


def usable(entry):
    return [run for run in entry["runs"] if run.get("feeds") and run["by"] == "onnxruntime"]


def test_onnx_runtime_loads_nearly_all_files():
    assert sum(not loads(FOLDER / entry["file"]) for entry in FILES) == NOT_LOADED


def test_every_where_is_ours_and_all_bits_are_the_same(entry, devices, tmp_path):
    model = FOLDER / entry["file"]
    ours = session(model, devices, **PLAIN)
    for run in usable(entry):
        expected, wheres = profiled(model, run, tmp_path)
        before = te_select.onnxruntime.calls()
        assert (outputs(ours, run) == expected) == (entry["file"] not in ROUNDED)
        assert te_select.onnxruntime.calls() - before == wheres


def test_optimized_model_has_the_same_bits(entry, devices):
    model = FOLDER / entry["file"]
    own, ours = session(model), session(model, devices)
    for run in usable(entry):
        assert (outputs(ours, run) == outputs(own, run)) == (entry["file"] not in ROUNDED)
