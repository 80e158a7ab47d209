"""Tests of the command line: what it prints, and its exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import te_select
from te_select.checking import verify as verify_module
from te_select.cli import app
from te_select.cli.workloads import parse_shape
from tests.support.libraries import make_first_format

FLAGS = ["--cond", "4,1", "--then", "4,5", "--else", ""]


def run(*args: str | Path) -> Any:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def run_json(*args: str | Path) -> Any:
    result = run(*args, "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one") / "mask.so"
    return te_select.export([te_select.Workload((4, 1), (4, 5), ())], path)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("two") / "lib.so"
    shapes = [(4,), ("batch",)]
    return te_select.export([te_select.Workload(s, s, (), "int16") for s in shapes], path)


def test_compile_writes_a_library_that_loads(tmp_path: Path) -> None:
    path = tmp_path / "mask.so"
    result = run("compile", *FLAGS, "--dtype", "int8", "-o", path)
    assert result.exit_code == 0, result.output
    assert "select_int8_numpy_c4x1_t4x5_e" in result.stdout
    assert "4:ct x 5:t" in result.stdout
    assert te_select.load(path).workload == te_select.Workload((4, 1), (4, 5), (), "int8")


def test_compile_writes_a_static_library_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "mask.so"
    document = run_json("compile", *FLAGS, "--static", "-o", path)
    (kernel,) = document["kernels"]
    assert kernel["c_function"] == f"te_{kernel['symbol']}"
    assert kernel["c_function"] in path.with_suffix(".h").read_text()
    assert path.with_suffix(".a").read_bytes().startswith(b"!<arch>")
    assert run("compile", *FLAGS, "-o", path).exit_code == 0
    assert not path.with_suffix(".a").exists()


def test_compile_takes_workloads_from_flags_json_and_file(tmp_path: Path) -> None:
    file = tmp_path / "workloads.json"
    listed = {"cond_shape": ["n"], "then_shape": ["n"], "else_shape": [], "dtype": "float64"}
    file.write_text(json.dumps([listed]))
    text = '{"cond_shape": [3], "then_shape": [], "else_shape": [], "op": "onnx"}'
    path = tmp_path / "lib.so"
    document = run_json("compile", *FLAGS, "--workload", text, "--workloads", file, "-o", path)
    kernels = document["kernels"]
    assert [k["out_shape"] for k in kernels] == [[4, 5], [3], ["n"]]
    assert [k["workload"]["dtype"] for k in kernels] == ["float32", "float32", "float64"]
    assert kernels[1]["workload"]["auto_broadcast"] == "multidirectional"
    assert [k["bytes_moved"] for k in kernels] == [4 + 80 + 4 + 80, 3 + 4 + 4 + 12, None]
    assert document["bytes"] == path.stat().st_size
    assert len(te_select.load(path)) == 3


def test_compile_for_another_cpu_needs_no_such_cpu(tmp_path: Path) -> None:
    path = tmp_path / "mask.so"
    document = run_json("compile", *FLAGS, "--target", "znver5", "-o", path)
    assert document["target"]["name"] == "znver5"


@pytest.mark.parametrize("verb", [["compile", *FLAGS], ["where", "build"]])
def test_output_of_the_name_of_a_module_of_python_is_refused(tmp_path: Path, verb: Any) -> None:
    result = run(*verb, "-o", tmp_path / "json.so")
    assert result.exit_code == 2
    assert "own module json; expected another name, such as" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["compile", *FLAGS], "-o is missing; expected the path of the library"),
        (["compile", "--cond", "4", "-o", "x.so"], "no --then, --else; expected a shape such as"),
        (["compile", "-o", "x.so"], "no workload is given; expected --cond, --then and --else"),
        (["compile", "--cond", "4,,2", "--then", "4", "--else", "", "-o", "x.so"],
         "--cond '4,,2' is not a shape"),
        (["compile", *FLAGS, "--op", "tf", "-o", "x.so"], "expected one of onnx, openvino, onednn"),
        (["compile", *FLAGS, "--op", "onnx", "--axis", "1", "-o", "x.so"], "must be left out"),
        (["compile", *FLAGS, "--auto-broadcast", "x", "-o", "x.so"],
         "expected none, numpy, pdpd, multidirectional"),
        (["compile", *FLAGS, "--axis", "one", "-o", "x.so"], "Invalid value for '--axis'"),
        (["compile", "--workload", "{", "-o", "x.so"], "--workload '{' is not JSON"),
        (["compile", "--workload", "{}", "-o", "x.so"], "lacks cond_shape; expected the fields"),
        (["compile", *FLAGS, "--shape", "4"], "No such option: --shape"),
        (["build"], "expected one of compile, verify, inspect, env"),
        (["verify"], "0 libraries are given; expected one"),
        (["verify", "a.so", "--check", "x"], "--check 'x' is not known; expected random, all_true"),
        (["verify", "a.so", "--case", "x"], "--case has no meaning beside a library"),
        (["verify", "--corpus", "a.json", "--check", "random"], "--check has no meaning"),
        (["verify", "a.so", "--seed", "-1"], "--seed"),
        (["inspect", "a.so", *FLAGS], "expected one or the other"),
        (["inspect", *FLAGS, "--source", "c"], "expected one of te, scheduled, tir, llvm, asm"),
        (["inspect", *FLAGS, "--source", "sass"], "source 'sass' is not known for"),
        (["inspect", "missing.so"], "missing.so is missing; expected a library"),
        (["inspect", "x.txt"], "x.txt does not end in .so"),
        (["verify", "missing.so"], "missing.so is missing; expected a library"),
        (["verify", "a.so", "--target", "znver5"], "--target has no meaning beside a library"),
        (["inspect", "a.so", "--target", "znver5"], "--target has no meaning beside a library"),
        (["verify", "--corpus", "missing.json"], "missing.json cannot be read: No such file"),
        (["compile", *FLAGS, "-o", "x.txt"], "-o: x.txt does not end in .so"),
        (["compile", *FLAGS, "-o", "x.so", "--tuning-logs", "missing"],
         "--tuning-logs 'missing' is no folder; expected one, or none"),
        (["compile", *FLAGS, "-o", "x.so", "--tuning-logs", ""], "--tuning-logs '' is no folder"),
        (["inspect", *FLAGS, "--tuning-logs", "missing"], "--tuning-logs 'missing' is no folder"),
        (["compile", "--cond", "3", "--then", "2", "--else", "", "-o", "x.so"],
         "axis 0 is 3, expected 2 or 1"),
        (["compile", *FLAGS, "--dtype", "f32", "-o", "x.so"],
         "dtype 'f32' is not supported; expected one of bool"),
        (["compile", *FLAGS, "--target", "foo", "-o", "x.so"],
         "target 'foo' is not known; expected native"),
        (["inspect", *FLAGS, "--target", "foo"], "target 'foo' is not known; expected native"),
    ],
)  # fmt: skip
def test_bad_usage_exits_2_and_says_what_is_accepted(args: list[str], message: str) -> None:
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("te-select: error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (["compile", "--cond", "3", "--then", "2", "--else", "", "-o", "x.so"], "BroadcastError"),
        (["compile", *FLAGS, "--dtype", "float", "-o", "x.so"], "DTypeError"),
        (["compile", *FLAGS, "--target", "pentium9", "-o", "x.so"], "TargetError"),
        (["verify", "--corpus", "missing.json"], "ArgumentError"),
        (["inspect", "missing.so"], "UsageError"),
        (["compile", *FLAGS, "-o", "/proc/x.so"], "ArtifactError"),
    ],
)
def test_an_error_has_its_kind_in_json(args: list[str], kind: str) -> None:
    result = run(*args)
    assert result.exit_code == (1 if kind == "ArtifactError" else 2), result.output
    assert result.stderr.startswith("te-select: error: ")
    assert result.stderr.count("\n") == 1
    as_json = run(*args, "--json")
    assert as_json.exit_code == result.exit_code
    document = json.loads(as_json.stdout)
    assert document["kind"] == kind
    assert f"te-select: error: {document['error']}\n" == result.stderr


def test_a_damaged_library_is_a_failure(one: Path, tmp_path: Path) -> None:
    path = te_select.load(one).export(tmp_path / "mask.so")
    path.write_bytes(b"damaged")
    result = run("verify", path)
    assert result.exit_code == 1, result.output
    assert "SHA-256" in result.stderr


def test_version_is_that_of_the_package() -> None:
    result = run("--version")
    assert result.exit_code == 0
    assert result.stdout == f"te-select {metadata.version('te-select')}\n"


def test_version_of_the_module_is_that_of_the_package() -> None:
    assert te_select.__version__ == metadata.version("te-select")
    assert "__version__" in te_select.__all__


VERBS = [
    [],
    *(["compile"], ["verify"], ["inspect"], ["env"], ["bench"], ["tune"], ["profile"]),
    *(["where"], ["where", "build"], ["cache"], ["cache", "info"], ["logs"], ["logs", "list"]),
]


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_h_is_help_on_every_verb(verb: list[str]) -> None:
    result = run(*verb, "-h")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: te-select {' '.join(verb)}")
    assert result.stdout == run(*verb, "--help").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compile", "--target", "native", "--target=znver5"], "--target is given 2 times; expec"),
        (["where", "build", "--target", "a", "--target", "a"], "--target is given 2 times; expec"),
        (["compile", "--cond", "1", "--cond", "2", "--cond", "3"], "--cond is given 3 times; exp"),
        (["compile", "-o", "a.so", "--output", "b.so"], "--output is given 2 times; expected it"),
        (["logs", "list", "--only", "a", "--only", "b"], "--only is given 2 times; expected it o"),
    ],
)
def test_option_of_one_value_is_refused_where_it_is_given_twice(
    words: list[str], message: str
) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"te-select: error: {message}")


def test_options_of_several_values_and_flags_may_be_given_twice(one: Path) -> None:
    result = run("verify", one, "--check", "random", "--check", "special", "--json", "--json")
    assert result.exit_code == 0, result.output


def test_no_memory_is_one_line(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise MemoryError("Unable to allocate 1. PiB")

    monkeypatch.setattr(verify_module, "verify_kernel", fail)
    result = run("verify", one)
    assert result.exit_code == 1
    assert result.stderr == (
        "te-select: error: there is not enough memory: Unable to allocate 1. PiB\n"
    )


def test_a_field_is_spelt_alike_everywhere(tmp_path: Path) -> None:
    path = tmp_path / "mask.so"
    compiled = run_json("compile", *FLAGS, "-o", path)
    inspected = run_json("inspect", path)
    manifest = json.loads(path.with_suffix(".json").read_text())
    assert compiled["kernels"] == inspected["kernels"]
    assert manifest["kernels"][0].items() <= compiled["kernels"][0].items()
    for document in (compiled, inspected):
        assert document["target"] == manifest["target"]
    assert compiled["import_seconds"] >= 0


def test_files_that_cannot_be_read_are_one_line(tmp_path: Path, one: Path) -> None:
    deep = "[" * 100_000
    binary, nested = tmp_path / "binary", tmp_path / "nested"
    binary.write_bytes(b"\xff\xfe\x00\x80")
    nested.write_text(deep)
    lacking = make_first_format(te_select.load(one).export(tmp_path / "lacking.so"))
    manifest = lacking.with_suffix(".json")
    document = json.loads(manifest.read_text())
    del document["kernels"][0]["config"]
    manifest.write_text(json.dumps(document))
    for args in (
        ["compile", "--workloads", binary, "-o", "x.so"],
        ["compile", "--workloads", nested, "-o", "x.so"],
        ["compile", "--workload", deep, "-o", "x.so"],
        ["verify", "--corpus", binary],
        ["verify", "--corpus", nested],
        ["inspect", lacking],
    ):
        result = run(*args)
        assert result.exit_code in {1, 2}, result.output
        assert result.stderr.startswith("te-select: error: ")
        assert result.stderr.count("\n") == 1


def test_corpus_beyond_memory_is_a_failure(tmp_path: Path) -> None:
    case = {
        "id": "a", "op": "numpy.where", "attrs": {}, "cond_dtype": "boolean", "dtype": "i8",
        "cond_shape": [2], "then_shape": [2], "else_shape": [], "expect": "ok", "out_shape": [2],
    }  # fmt: skip
    file = tmp_path / "huge.json"
    for operand in ("then", "out"):
        file.write_text(json.dumps([{**case, f"{operand}_expr": "np.zeros((9999999999999,))"}]))
        result = run("verify", "--corpus", file)
        assert result.exit_code == 1, result.output
        assert "cannot be read" in result.stdout
    file.write_text(json.dumps([{**case, "cond_pshape": {"rank": 10**15}}]))
    assert run("verify", "--corpus", file).stderr.count("\n") == 1


def test_verify_passes_every_check_of_every_kernel(two: Path) -> None:
    document = run_json("verify", two)
    assert document["passed"]
    checks = {(r["kernel"], r["check"]) for r in document["results"]}
    assert len(checks) == 2 * len(verify_module.CHECKS)
    assert run("verify", two).exit_code == 0


def test_verify_shows_a_failure_and_exits_1(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "first_difference", lambda *_: "out[0,0] is 0x0")
    result = run("verify", one, "--check", "random", "--seed", "3")
    assert result.exit_code == 1
    assert "FAILED random: out[0,0] is 0x0" in result.stdout
    assert f"te-select verify {one} --kernel" in result.stdout
    document = json.loads(run("verify", one, "--json").stdout)
    assert not document["passed"]


def test_verify_of_one_kernel(two: Path) -> None:
    name = te_select.Workload((4,), (4,), (), "int16").name
    document = run_json("verify", two, "--kernel", name, "--check", "bytes")
    assert [(r["kernel"], r["check"]) for r in document["results"]] == [(name, "bytes")]
    assert "expected one of select_int16" in run("verify", two, "--kernel", "x").stderr


def test_verify_runs_corpus_files(tmp_path: Path) -> None:
    case = {
        "id": "a", "op": "numpy.where", "attrs": {}, "cond_dtype": "boolean", "dtype": "i8",
        "cond_shape": [2], "then_shape": [2], "else_shape": [], "expect": "ok", "out_shape": [2],
    }  # fmt: skip
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(
        json.dumps([{**case, "dtypes": ["i8", "f32"]}, {**case, "id": "s", "dtype": "string"}])
    )
    bad.write_text(json.dumps([{**case, "id": "b", "out_shape": [3]}]))
    document = run_json("verify", "--corpus", good)
    assert document["systems"] == {
        "numpy.where": {"cases": 2, "passed": 2, "failed": 0, "skipped": 1}
    }
    assert list(document["skip_reasons"].values()) == [1]
    result = run("verify", "--corpus", good, bad)
    assert result.exit_code == 1
    assert "2 passed, 1 failed, 1 skipped" in result.stdout
    assert f"te-select verify --corpus {bad} --case b" in result.stdout


def test_inspect_shows_what_a_library_is(one: Path) -> None:
    result = run("inspect", one)
    assert result.exit_code == 0
    for shown in ("4:ct x 5:t", "168", "origin", "default", "loads here", "tvm"):
        assert shown in result.stdout


def test_inspect_says_why_a_library_does_not_load(one: Path, tmp_path: Path) -> None:
    path = tmp_path / "mask.so"
    path.write_bytes(one.read_bytes() + b"x")
    path.with_suffix(".json").write_bytes(one.with_suffix(".json").read_bytes())
    assert "SHA-256" in run_json("inspect", path)["loads_here"]


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("te", "T."),
        ("tir", "T."),
        ("scheduled", "T."),
        ("llvm", "define"),
        ("asm", "ret"),
    ],
)
def test_inspect_shows_every_source(level: str, shown: str, one: Path) -> None:
    from_library = run("inspect", one, "--source", level)
    assert shown in from_library.stdout
    from_flags = run_json("inspect", *FLAGS, "--source", level)
    assert from_flags["kernels"][0]["source"].strip() == from_library.stdout.strip()


def test_inspect_wants_one_kernel_for_a_source(two: Path) -> None:
    result = run("inspect", two, "--source", "te")
    assert result.exit_code == 2
    assert "expected --kernel with one of select_int16" in result.stderr


def test_env_names_versions_cpu_and_compiler() -> None:
    document = run_json("env")
    assert document["versions"]["te_select"] == metadata.version("te-select")
    assert document["cpu"]["features"]
    assert document["toolchains"]["c_compiler"]
    assert "OMP_NUM_THREADS" in run("env").stdout


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", ()),
        (" ", ()),
        ("4", (4,)),
        ("1, batch,0", (1, "batch", 0)),
        ("_a,007", ("_a", 7)),
        ("[4, 1]", (4, 1)),
        ("[]", ()),
    ],
)
def test_shapes_are_comma_lists(text: str, shape: tuple[int | str, ...]) -> None:
    assert parse_shape(text) == shape


@pytest.mark.parametrize("text", ["-1", "1.5", "1 2", ",", "1,", "2x", "[1", "1]", "[[1]]", "٣"])
def test_malformed_shapes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a shape"):
        parse_shape(text)


@pytest.mark.parametrize("verb", ["compile", "verify", "inspect", "env"])
def test_help_of_a_verb_has_an_example(verb: str) -> None:
    assert f"te-select {verb}" in run(verb, "--help").stdout.split("Example")[1]


def test_no_arguments_show_the_help() -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (0, run("--help").stdout)


def test_an_interrupt_is_quiet(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(verify_module, "verify_kernel", interrupt)
    result = run("verify", one)
    assert (result.exit_code, result.output) == (130, "")


def python(code: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], text=True, check=False, timeout=60, **options
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['te-select', '--help']\n"
        "from te_select.cli import main\n"
        "try: main()\n"
        "finally: print('HEAVY', sorted({'tvm', 'tvm_ffi', 'numpy'} & set(sys.modules)))"
    )
    done = python(code, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("HEAVY []\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_leaves_is_no_error(unbuffered: str) -> None:
    """The error comes when something is printed, or when all is flushed at the end."""
    code = (
        "import sys; sys.argv = ['te-select', 'env']\n"
        "sys.stdin.read()\n"
        "from te_select.cli import main\nmain()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    process.stdin.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
