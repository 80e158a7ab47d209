"""The examples, run as a user runs them."""

import importlib.util
import shutil
from os import environ
from sys import executable

from pytest import importorskip, mark, param, skip

import te_select
from tests.support import ROOT, c_half, masked_rows
from tests.support.ort_models import library as where_in_c
from tests.support.programs import output as run

EXAMPLES = ROOT / "examples"
TE_SELECT = (executable, "-c", "from te_select.cli import main; main()")
MASK = ("--cond", "1,1,1024,1024", "--then", "1,12,1024,1024", "--else", "")
ROWS = ("--cond", "batch,1", "--then", "batch,8", "--else", "")


def without_pythonpath():
    """The environment without what hides optional packages from a test's processes."""
    return {name: value for name, value in environ.items() if name != "PYTHONPATH"}


def needs(*programs):
    """Skip where a program is missing."""
    if missing := [name for name in programs if shutil.which(name) is None]:
        skip(f"no {' and no '.join(missing)}")


def test_demo_verifies_the_causal_mask_in_a_process_without_tvm():
    out = run(executable, EXAMPLES / "python/demo.py")
    assert "bit for bit" in out
    assert "tvm: no" in out


@mark.parametrize("ending", [".so", param(".a", marks=mark.slow)])
def test_c_program_selects_the_causal_mask(tmp_path, ending):
    needs("cc")
    run(*TE_SELECT, "compile", *MASK, "--static", "-o", tmp_path / "attention.so")
    options = [f"-I{tmp_path}", f"-L{tmp_path}", f"-l:attention{ending}", f"-Wl,-rpath,{tmp_path}"]
    strict = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror")
    source = EXAMPLES / "c" / "main.c"
    run("cc", *strict, source, *options, "-pthread", "-ldl", "-o", tmp_path / "main")
    assert run(tmp_path / "main").startswith("12582912 elements selected from C, in ")


@mark.slow
@mark.parametrize("ending", [".so", ".a"])
def test_cmake_builds_the_cpp_program(tmp_path, ending):
    needs("cmake", "c++")
    run(*TE_SELECT, "compile", *ROWS, "--static", "-o", tmp_path / "rows.so")
    library = f"-DLIBRARY={tmp_path / 'rows'}{ending}"
    run("cmake", "-S", EXAMPLES / "cpp", "-B", tmp_path / "cpp", library)
    run("cmake", "--build", tmp_path / "cpp")
    assert run(tmp_path / "cpp" / "main") == "32 elements selected from C++\n"


def test_cpp_program_runs_an_exported_kernel_through_tvm_ffi(tmp_path):
    needs("c++")
    workload = masked_rows(4, 8)
    library = te_select.compile(workload).export(tmp_path / "small.so")

    def config(flag):
        return run(executable, "-m", "tvm_ffi.config", flag).split()

    program = tmp_path / "main"
    run(
        "c++",
        EXAMPLES / "tvm_ffi" / "main.cc",
        "-o",
        program,
        *config("--cxxflags"),
        *config("--ldflags"),
        *config("--libs"),
        f"-Wl,-rpath,{config('--libdir')[0]}",
    )
    assert run(program, library) == "32 elements selected from C++\n"


def test_library_is_an_operator_of_pytorch(tmp_path):
    if importlib.util.find_spec("torch") is None:
        skip("no torch")
    workload = te_select.Workload((1, 1, 128, 128), ("batch", 12, 128, 128), ())
    library = te_select.export([workload], tmp_path / "batches.so")
    program = EXAMPLES / "torch" / "attention.py"
    out = run(executable, program, library, env=without_pythonpath())
    assert out == "589824 elements selected in PyTorch\n"


def test_c_program_selects_any_shapes_on_threads_of_openmp(tmp_path):
    needs("cc")
    source = EXAMPLES / "c" / "any_shapes.c"
    library = where_in_c()
    for name in ("operand_order.h", "where/where_call.h"):
        shutil.copy(c_half.RUNTIME / name, tmp_path)
    shutil.copy(tmp_path / "where_call.h", tmp_path / "where.h")
    strict = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fopenmp", f"-I{tmp_path}")
    run("cc", *strict, source, library, f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "main")
    assert run(tmp_path / "main") == "0 -1 0\n"


@mark.slow
def test_onnx_runtime_runs_an_attention_block_with_our_where(every_kernel):
    importorskip("onnxruntime", minversion="1.24")
    importorskip("onnx")
    env = {**without_pythonpath(), "TE_SELECT_CACHE_DIR": str(every_kernel.parent)}
    out = run(executable, EXAMPLES / "onnxruntime" / "masked.py", env=env)
    assert out.endswith("equal bits; te-select was called 2 times\n")


def test_cpp_program_runs_a_model_with_our_where(tmp_path):
    needs("c++")
    if not (there := environ.get("ONNXRUNTIME_HOME")):
        skip("ONNXRUNTIME_HOME is not set")
    onnx = importorskip("onnx")
    graph = "m (bool[n] mask, float[n] x) => (float[n] o) <float least = {-1.0}>"
    text = f'<ir_version: 8, opset_import: ["": 18]> {graph} {{o = Where (mask, x, least)}}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    options = [f"-I{there}/include", f"-L{there}/lib", "-lonnxruntime", f"-Wl,-rpath,{there}/lib"]
    strict = ("-std=c++17", "-Wall", "-Wextra", "-Werror")
    source = EXAMPLES / "onnxruntime"
    run("c++", *strict, source / "masked.cc", *options, "-o", tmp_path / "masked")
    library = where_in_c()
    assert run(tmp_path / "masked", library, tmp_path / "model.onnx") == "1 -1\n"
