import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import te_select
from te_select import Workload
from te_select.compiler import SOURCES
from te_select.targets import resolve

W = Workload((64, 1), (64, 5), (5,))
TYPICAL = {
    "te": "then_b",
    "tir": "te_select_span",
    "scheduled": "sblock",
    "llvm": "define",
    "asm": "ret",
}


def run_python(script, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_importing_the_package_imports_neither_tvm_nor_tvm_ffi():
    run = run_python(
        "import sys, te_select; print([m for m in ('tvm', 'tvm_ffi') if m in sys.modules])"
    )
    assert run.stdout.strip() == "[]", run.stderr


def test_exported_kernel_runs_where_tvm_cannot_be_imported(tmp_path):
    path = te_select.compile(W).export(tmp_path / "deep" / "select.so")
    run = run_python(f"""
        import sys
        sys.modules["tvm"] = None
        import numpy as np, te_select
        kernel = te_select.load({str(path)!r})
        cond = np.arange(64)[:, None] % 3 == 0
        then = np.arange(320, dtype=np.float32).reshape(64, 5)
        else_ = -np.arange(5, dtype=np.float32)
        assert np.array_equal(kernel(cond, then, else_), np.where(cond, then, else_))
        maps = open("/proc/self/maps").read()
        print("libtvm_runtime" in maps, "libtvm_compiler" in maps)
    """)
    assert run.stdout.strip() == "False False", run.stderr


def test_library_holds_each_workload_once(tmp_path):
    other = Workload((3,), (3,), (3,), "int8")
    path = te_select.export([W, other, W], tmp_path / "lib.so")
    library = te_select.load(path)
    assert sorted(library) == sorted([W.name, other.name])
    manifest = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert [kernel["symbol"] for kernel in manifest["kernels"]] == [W.name, other.name]
    assert manifest["target"]["cpu_features"]
    assert {"te_select", "tvm", "tvm_ffi", "llvm"} <= set(manifest["versions"])


def test_export_of_nothing_is_refused(tmp_path):
    with pytest.raises(te_select.ArgumentError, match="at least one"):
        te_select.export([], tmp_path / "lib.so")


def test_same_workloads_give_the_same_bytes(tmp_path):
    paths = [te_select.export([W], tmp_path / name / "lib.so", "x86-64-v3") for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("kind", SOURCES)
def test_source_is_the_same_for_a_compiled_and_a_loaded_kernel(kind, tmp_path):
    kernel = te_select.compile(W, "x86-64-v3")
    loaded = te_select.load(kernel.export(tmp_path / "select.so"))
    text = kernel.source(kind)
    assert text == loaded.source(kind)
    assert TYPICAL[kind] in text


def test_unknown_source_is_refused_and_the_known_are_listed():
    with pytest.raises(te_select.SelectError, match="te, tir, scheduled, llvm, asm"):
        te_select.compile(W).source("wasm")


def test_missing_compiler_is_a_toolchain_error():
    run = run_python(
        """
        import te_select
        try:
            te_select.compile(te_select.Workload((3,), (3,), (3,)))
        except te_select.ToolchainError as error:
            print("ToolchainError", "compiler" in str(error))
        """,
        PATH="/nonexistent",
        CC="",
    )
    assert run.stdout.strip() == "ToolchainError True", run.stderr


def test_tuning_logs_that_cannot_be_read_are_an_error(tmp_path):
    with pytest.raises(te_select.TuningError):
        te_select.compile(W, tuning_logs=tmp_path)
    assert te_select.compile(W, tuning_logs=False).origin == "default"


def test_library_compiled_for_another_cpu_is_written_but_not_loaded(tmp_path):
    features = set(resolve("native").cpu_features)
    foreign = next(cpu for cpu in ("znver5", "bdver2") if set(resolve(cpu).cpu_features) - features)
    path = te_select.export([W], tmp_path / "lib.so", foreign)
    with pytest.raises(te_select.ArtifactError, match="CPU"):
        te_select.load(path)


def test_parallel_kernel_is_right_from_eight_threads_at_once():
    from concurrent.futures import ThreadPoolExecutor

    n = 1 << 20
    kernel = te_select.compile(Workload((n,), (n,), (n,)))
    rng = np.random.default_rng(0)
    cond = rng.random(n) < 0.5
    sides = [rng.random((2, n)).astype(np.float32) for _ in range(8)]

    def call(pair):
        return all(np.array_equal(kernel(cond, *pair), np.where(cond, *pair)) for _ in range(5))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, sides))


def test_parallel_kernel_works_in_a_forked_child():
    run = run_python("""
        import os, numpy as np, te_select
        n = 1 << 22
        kernel = te_select.compile(te_select.Workload((n,), (n,), (n,)))
        cond = np.arange(n) % 3 == 0
        a, b = np.ones(n, np.float32), np.zeros(n, np.float32)
        kernel(cond, a, b)
        child = os.fork()
        if not child:
            os._exit(0 if np.array_equal(kernel(cond, a, b), np.where(cond, a, b)) else 3)
        print(os.waitpid(child, 0)[1], np.array_equal(kernel(cond, a, b), np.where(cond, a, b)))
    """)
    assert run.stdout.strip() == "0 True", run.stderr
