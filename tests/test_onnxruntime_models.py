"""Models of ``TE_SELECT_MODELS`` in ONNX Runtime, with Where by te-select and without."""

import collections
import json

import numpy as np
import pytest

import te_select
from te_select.numpy_where.kernels import library
from tests.support.models import corpus

CORPUS = corpus()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CORPUS is None, reason="TE_SELECT_MODELS is not set"),
]
onnxruntime = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

FOLDER, INDEX = CORPUS or (None, [])
FILES = [entry for entry in INDEX if entry["kind"] == "onnx"]
NOT_LOADED = 4  # by ONNX Runtime itself
CONSTANT = "nodes with constant inputs are not folded"
NO_SHAPE = "of what looks like a scalar the rank may be unknown, so out has no shape"
FEWER = "ONNX Runtime's own needs more nodes"
CHANGED = {
    "onnx/bert/bert_tsstatic.onnx": CONSTANT,
    "onnx/deberta/deberta_v2_ts.onnx": NO_SHAPE,
    "onnx/fcos/fcos_ts.onnx": FEWER,
    "onnx/hand_a/hand_a_f16_dy.onnx": FEWER,
    "onnx/hand_a/hand_a_f16_ts.onnx": FEWER,
    "onnx/hubert/hubert_ts.onnx": NO_SHAPE,
    "onnx/llama/llama_tsstatic.onnx": CONSTANT,
    "onnx/swin/tv_swin_dy.onnx": CONSTANT,
}
"""Files whose optimized graphs have other nodes if Where is overridden."""
NOT_MERGED = "equal nodes of other domains are not merged"
NOT_SWAPPED = "Not before a node of another domain is not fused with it"
INLINED = "ONNX's inliner leaves casts that ONNX Runtime's folds"
REWRITTEN = {
    "onnx/bert/bert_dyraw.onnx": NOT_MERGED,
    "onnx/bert/bert_ts.onnx": NOT_MERGED,
    "onnx/bert/bert_tsstatic.onnx": NOT_MERGED,
    "onnx/deberta/deberta_v1_dy.onnx": NOT_SWAPPED,
    "onnx/deberta/deberta_v2_dy.onnx": NOT_SWAPPED,
    "onnx/deberta/deberta_v2_ts.onnx": NOT_SWAPPED,
    "onnx/fcos/fcos_ts.onnx": FEWER,
    "onnx/gpt2/gpt2_ts.onnx": NOT_MERGED,
    "onnx/hand_a/hand_a_f16_dy.onnx": FEWER,
    "onnx/hand_a/hand_a_f16_ts.onnx": FEWER,
    "onnx/hand_a/hand_a_onnx_onnxscript_a.onnx": INLINED,
    "onnx/hubert/hubert_ts.onnx": NOT_SWAPPED,
    "onnx/llama/llama_ts.onnx": NOT_MERGED,
    "onnx/llama/llama_tsstatic.onnx": NOT_MERGED,
    "onnx/opt/opt_ts.onnx": NOT_MERGED,
    "onnx/swin/swin_ts.onnx": NOT_SWAPPED,
    "onnx/swin/swin_v4_ts.onnx": NOT_SWAPPED,
}
"""The same of rewritten models."""


@pytest.fixture(autouse=True)
def _built_once(every_kernel, monkeypatch):
    monkeypatch.setattr(library, "whole_file", lambda: every_kernel)


def session(model, override=None, **given):
    """A session; override: None without our library."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    for name, value in given.items():
        setattr(options, name, value)
    if override is not None:
        te_select.onnxruntime.register(options, override=override)
    return onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])


def operators(model, override, folder):
    """How many nodes of each operator a model has when ONNX Runtime has optimized it."""
    session(model, override, optimized_model_filepath=str(folder / "optimized.onnx"))
    found = onnx.load(folder / "optimized.onnx", load_external_data=False)
    counts, graphs = collections.Counter(), [found.graph, *found.functions]
    while graphs:
        for node in graphs.pop().node:
            domain = "" if node.domain == "te.select" else node.domain
            counts[f"{domain}:{node.op_type}"] += 1
            graphs += [a.g for a in node.attribute if a.HasField("g")]
    return counts


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


@pytest.fixture(params=FILES, ids=lambda entry: entry["file"])
def entry(request):
    if not loads(FOLDER / request.param["file"]):
        pytest.skip("ONNX Runtime itself does not load it")
    return request.param


def usable(entry):
    return [run for run in entry["runs"] if run.get("feeds") and run["by"] == "onnxruntime"]


def test_onnx_runtime_loads_nearly_all_files():
    assert sum(not loads(FOLDER / entry["file"]) for entry in FILES) == NOT_LOADED


def test_model_has_the_nodes_that_it_had(entry, tmp_path):
    model = FOLDER / entry["file"]
    own, ours = (operators(model, override, tmp_path) for override in (None, True))
    assert (own != ours) == (entry["file"] in CHANGED), (own - ours, ours - own)


def test_rewritten_model_has_the_nodes_that_it_had(entry, tmp_path):
    model = FOLDER / entry["file"]
    rewritten = tmp_path / "rewritten.onnx"
    onnx.save(te_select.onnxruntime.rewrite(model), rewritten)
    own, ours = (operators(*of, tmp_path) for of in ((model, None), (rewritten, False)))
    assert (own != ours) == (entry["file"] in REWRITTEN), (own - ours, ours - own)


def test_every_where_is_ours_and_all_bits_are_the_same(entry, tmp_path):
    model = FOLDER / entry["file"]
    rewritten = tmp_path / "rewritten.onnx"
    onnx.save(te_select.onnxruntime.rewrite(model), rewritten)
    ours = session(model, True, **PLAIN)
    of_rewritten = session(rewritten, False, **PLAIN)
    for run in usable(entry):
        expected, wheres = profiled(model, run, tmp_path)
        before = te_select.onnxruntime.calls()
        assert outputs(ours, run) == expected
        assert te_select.onnxruntime.calls() - before == wheres
        assert outputs(of_rewritten, run) == expected


def test_optimized_model_has_the_same_bits(entry):
    if entry["file"] in CHANGED:
        pytest.skip("another graph rounds otherwise")
    model = FOLDER / entry["file"]
    own, ours = session(model), session(model, True)
    for run in usable(entry):
        assert outputs(ours, run) == outputs(own, run)
