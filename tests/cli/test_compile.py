"""``te-select compile``: the libraries it writes, and what it prints about them."""

import importlib
import json
import shutil
from pathlib import Path
from types import SimpleNamespace

from pytest import mark

import te_select
from tests.support.cli import FLAGS, refused, run, run_json


def test_compile_takes_workloads_from_flags_json_and_file(tmp_path):
    file = tmp_path / "workloads.json"
    listed = {"cond_shape": ["n"], "then_shape": ["n"], "else_shape": [], "dtype": "float64"}
    file.write_text(json.dumps([listed]))
    text = '{"cond_shape": [3], "then_shape": [], "else_shape": [], "op": "onnx", "dtype": "int8"}'
    path = tmp_path / "lib.so"
    document = run_json("compile", *FLAGS, "--workload", text, "--workloads", file, "-o", path)
    kernels = document["kernels"]
    assert [k["out_shape"] for k in kernels] == [[4, 5], [3], ["n"]]
    assert [k["workload"]["dtype"] for k in kernels] == ["float32", "int8", "float64"]
    assert kernels[1]["workload"]["auto_broadcast"] == "multidirectional"
    assert [k["bytes_moved"] for k in kernels] == [4 + 80 + 4 + 80, 3 + 1 + 1 + 3, None]
    assert document["bytes"] == path.stat().st_size
    assert len(te_select.load(path)) == 3


@mark.parametrize("verb", ["compile", "where"])
def test_seconds_are_those_of_the_build_without_the_import(verb, one, tmp_path, monkeypatch):
    path = Path(shutil.copy(one, tmp_path / "mask.so"))
    clock = iter([10.0, 12.0, 17.0])
    module = importlib.import_module(f"te_select.cli.{verb}")
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr("te_select.export", lambda *_, **__: path)
    monkeypatch.setattr("te_select.selecting.kernels.building.build", lambda *_: path)
    words = {"compile": ["compile", *FLAGS], "where": ["where", "build"]}[verb]
    document = run_json(*words, "-o", path)
    assert (document["import_seconds"], document["seconds"]) == (2.0, 5.0)


def test_compile_writes_static_code_where_asked(tmp_path):
    path = tmp_path / "mask.so"
    document = run_json("compile", *FLAGS, "--static", "-o", path)
    (kernel,) = document["kernels"]
    assert kernel["c_function"] == f"te_{kernel['symbol']}"
    assert kernel["c_function"] in path.with_suffix(".h").read_text()
    assert path.with_suffix(".a").read_bytes().startswith(b"!<arch>")
    run_json("compile", *FLAGS, "--static-object", "-o", path)
    assert path.with_suffix(".o").read_bytes().startswith(b"\x7fELF")
    both = ("--static", "--static-object", "-o", path)
    assert "expected one of them" in refused("compile", *FLAGS, *both)
    assert run("compile", *FLAGS, "-o", path).exit_code == 0
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".a", ".o")]


@mark.parametrize("verb", [["compile", *FLAGS], ["where", "build"]])
def test_output_of_the_name_of_a_module_of_python_is_refused(tmp_path, verb):
    for name in ("json.so", "json.abi3.so"):
        said = refused(*verb, "-o", tmp_path / name)
        assert "own module json; expected another name, such as" in said
    assert list(tmp_path.iterdir()) == []
