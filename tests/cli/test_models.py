"""Tests of --model: what the verbs do with the nodes of a model file."""

import hashlib
import pickle
import re
from json import dumps, loads

from pytest import MonkeyPatch, fixture, importorskip, mark, raises

import te_select
from tests.support.cli import refused, run, run_json
from tests.support.libraries import beside
from tests.support.onednn_graph import op, select, tensor


@fixture(scope="module")
def graph(tmp_path_factory):
    """Four Selects: two equal ones, one with named dims, and one of unknown rank."""
    path = tmp_path_factory.mktemp("model") / "graph.json"

    def at(first, cond, then, dtype="f32"):
        given = select(cond, then, [], dtype=dtype)
        for i, one in enumerate((*given["inputs"], *given["outputs"])):
            one["id"] = first + i
        return given

    ops = [
        at(0, [1, 4], [2, 4]),
        at(10, [1, 4], [2, 4]),
        at(20, [1, 1], [-(2**63), 4]),
        at(30, [4], [-(2**63)]),
        op("Abs", [tensor(50, [4])], [tensor(51, [4])]),
    ]
    path.write_text(dumps({"graph": ops}))
    return path


@fixture(scope="module")
def library(graph):
    """What compile prints as JSON, and the library; kernels of rows would take 10 s to build."""
    path = graph.with_name("model.so")
    with MonkeyPatch.context() as patch:
        patch.setattr("te_select.operator.family.parts_of_width", lambda width: [f"w{width}"])
        return run_json("compile", "--model", graph, "-o", path), path


def test_manifest_names_the_file_of_the_model(graph, library):
    digest = hashlib.sha256(graph.read_bytes()).hexdigest()
    path = library[1]
    (model,) = beside(path)["models"]
    assert model == {"name": "graph.json", "sha256": digest, "nodes": 4}
    assert digest in run("inspect", path).stdout
    (part,) = (
        each for each in run_json("inspect", path, "--sbom")["components"]
        if each["type"] == "machine-learning-model"
    )  # fmt: skip
    assert part["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_compile_says_first_what_became_of_the_nodes(graph, tmp_path):
    few = graph.with_name("few.json")
    few.write_text(dumps({"graph": loads(graph.read_text())["graph"][:2]}))
    path = tmp_path / "few.so"
    named = ("--name", "masked=graph#1", "--name", "mask=mask")
    lines = run("compile", "--model", few, "-o", path, *named).stdout.splitlines()
    assert lines[0].split(maxsplit=1) == ["model", f"{few}: 2 nodes: 2 compiled"]
    alone = te_select.load(path).export(tmp_path / "alone.so")
    for text in (each.with_suffix(".h").read_text() for each in (path, alone)):
        for name in ("masked", "mask"):
            assert f"#define te_{name} te_select_float32_numpy_c1x4_t2x4_e\n" in text


@mark.parametrize(
    "given, said",
    [
        ("masked", "expected, for example, masked=graph#0"),
        ("masked=graph=9", "there are 0 C functions; expected the place or the name of a node"),
        ("masked=graph#3", "there are 0 C functions"),  # dispatched
        ("masked=mask", "there are 2 C functions"),
        ("select_x=graph#0", "that does not begin with select"),
        ("a b=graph#0", "names has 'a b', which is no name for C; expected an identifier"),
    ],
)
def test_names_in_c_that_mean_no_function_are_refused(graph, tmp_path, given, said):
    flags = ("--model", graph, "-o", tmp_path / "x.so", "--name", given)
    assert said in refused("compile", *flags)


def test_kernel_is_found_by_the_place_of_its_node(library):
    document, path = library
    loaded = te_select.load(path)
    symbols = [node["symbol"] for node in document["nodes"]]
    for again in (loaded, pickle.loads(pickle.dumps(loaded))):
        for place in range(3):
            assert again[f"graph#{place}"] is again[symbols[place]]
        with raises(KeyError, match=r"'graph#3' has no kernel .* status is dispatched"):
            again["graph#3"]


def test_manifest_says_which_node_is_served_by_which_function(library):
    document, path = library
    nodes = beside(path)["nodes"]
    assert [node["place"] for node in nodes] == ["graph#0", "graph#1", "graph#2", "graph#3"]
    symbols = [node["symbol"] for node in nodes]
    assert symbols[0] == symbols[1] != symbols[2]
    assert symbols[3] == "te_select_where"
    assert "rank" in nodes[3]["reason"]
    assert [node["symbol"] for node in document["nodes"]] == symbols
    assert run_json("inspect", path)["nodes"] == nodes
    shown = run("inspect", path).stdout
    assert "graph#1   mask" in shown
    assert re.search(r"\n  te_select_where\n +shapes +any\n +kernels +7\n", shown)


def test_one_kernel_of_a_model_is_exported_without_the_nodes(library, tmp_path):
    alone = next(iter(te_select.load(library[1]).values())).export(tmp_path / "one.so")
    assert "nodes" not in beside(alone)


def test_inspect_shows_a_table(graph):
    result = run("inspect", "--model", graph, "--size", "t21_0=8")
    assert result.exit_code == 0, result.output
    lines = {line.split()[0]: line for line in result.stdout.splitlines() if line.strip()}
    for word in ("mask", "[1,4]", "[2,4]", "[]", "float32", "compiled", "graph input"):
        assert word in lines["graph#0"]
    assert lines["graph#0"].split()[-1] == str(4 + 4 * (8 + 1 + 8))
    assert lines["graph#2"].split()[-1] == str(1 + 4 * (32 + 32))  # cond is one value
    assert lines["graph#3"].split()[-1] == "-"
    assert "t21_0  dim 0 of tensor 21" in result.stdout
    last = run_json("inspect", "--model", graph)["nodes"][3]
    assert (last["status"], last["then_shape"]) == ("dispatched", None)
    assert last["bytes_per_call"] is None
    assert "graph#3: dispatched: the rank of then" in result.stdout


@fixture
def onnx_file(tmp_path):
    """Writes a model of one node, whose inputs are names, element types and shapes."""
    helper = importorskip("onnx").helper
    from tests.support import models

    def written(op, operands, inputs, **options):
        path = tmp_path / "model.onnx"
        nodes = [helper.make_node(op, list(operands), ["out"])]
        tensors = [models.tensor(*each) for each in inputs]
        path.write_bytes(models.model(nodes, tensors, **options).SerializeToString())
        return path

    return written


def test_size_that_the_file_writes_as_arithmetic_is_a_name(onnx_file):
    shape = ["past + new"]
    path = onnx_file("Where", "cxx", [("c", "bool", shape), ("x", "int8", shape)])
    found = run_json("inspect", "--model", path, "--size", "past_new=7")
    assert found["nodes"][0]["bytes_per_call"] == 7 + 3 * 7
    assert found["nodes"][0]["dims"] == {"past_new": "past + new"}


def test_sizes_for_some_dims_of_a_workload_only_are_refused(onnx_file, tmp_path):
    shape = ["batch", "n"]
    path = onnx_file("Where", "cxx", [("c", "bool", shape), ("x", "int8", shape)])
    flags = ("--model", path, "--size", "n=999999999999", "--tuning-logs", tmp_path)
    assert "have no size; expected, for example, --size batch=8" in refused("tune", *flags)


@mark.slow
def test_bench_and_tune_take_a_model(graph, tmp_path):
    said = "dims t21_0 of graph#2 have no size; expected, for example, --size t21_0=8"
    assert said in refused("bench", "--model", graph)
    flags = ("--model", graph, "--size", "t21_0=8")
    rows = run_json("bench", *flags, "--peers", "none", "--rounds", "1")["rows"]
    assert [row["name"] for row in rows] == ["graph#0", "graph#2"]
    logs = tmp_path / "logs"
    tuned = run_json("tune", *flags, "--trials", "1", "--tuning-logs", logs)
    assert {one["name"] for one in tuned["workloads"]} == {"graph#0", "graph#2"}


@mark.parametrize(
    "words",
    ["a.so", "--level=a", "--config=a", "--load", "--sbom", "--source=te", "--kernel=a",
     "--target=a", "--tuning-logs=."],
)  # fmt: skip
def test_flag_that_a_model_has_no_use_for_is_refused(graph, words):
    assert "no meaning beside --model" in refused("inspect", "--model", graph, words)


@mark.parametrize(
    "words, said",
    [
        ("compile --model M --cond 4 -o x.so", "--cond has no meaning beside --model"),
        ("inspect --model M --size batch", "expected, for example, batch=8"),
        ("tune --model M --size t21_0=2 --size t21_0=3", "t21_0 is given twice"),
        ("compile --model none.onnx -o a.so", "'none.onnx' does not exist"),
        ("compile --model M -o x.so --name m=graph#0 --name m=graph#1", "m is given twice"),
        ("inspect --model M --size batch=8", "expected one of t21_0"),
        ("inspect --size n=8 --cond 4", "no meaning without --model"),
        ("tune --model M --library x.so", "expected one"),
        ("inspect --model M --size t21_0=1:2", "t21_0 is a range; expected one size"),
    ],
)
def test_flags_that_contradict_each_other_are_bad_usage(graph, words, said):
    assert said in refused(*(graph if word == "M" else word for word in words.split()))


def test_model_that_cannot_be_read_is_a_failure(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text("{}")
    for verb in (["inspect"], ["compile", "-o", "x.so"], ["bench"], ["tune"]):
        assert "no oneDNN graph" in refused(*verb, "--model", path, code=1)
    path.write_text('{"graph": []}')
    assert "holds no Where and no Select" in run("inspect", "--model", path).stderr
