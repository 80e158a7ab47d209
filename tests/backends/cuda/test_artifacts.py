"""From a workload to a library for CUDA devices, run on a stand-in for the driver."""

from functools import partial

import numpy as np
from pytest import fixture, mark, raises, skip

import te_select
from te_select import ArgumentError, Workload, export, load
from te_select.backends.cuda import builder, compilers
from te_select.backends.scheduled import symbol
from te_select.backends.targets import resolve
from te_select.base.kinds import KINDS
from te_select.compiler.scheduling import schedule
from te_select.verify.checks import CHECKS
from te_select.verify.cuda import OnDevice
from te_select.verify.verify import verify_kernel, with_numpy
from tests.support import cli, flat, output, python, shapes
from tests.support.cuda_emulation import Emulated
from tests.support.cuda_standin import fake_driver
from tests.support.libraries import beside
from tests.support.oracle.doors_of_cuda import OnCuda

WORKLOADS = (
    flat(4099),
    Workload(*shapes("1,1,33,40 2,3,33,40 ()"), "bfloat16"),
    Workload(*shapes("97,1 97,3 97,3"), "uint8"),
    Workload(*shapes("33,1,40 33,6,1 6,40"), "float64"),
    Workload(*shapes("n,1 n,63 n,63"), "float16"),
    Workload(*shapes("8,1,1 8,31,17 1,31,17"), "complex128"),
)
ARCHS = ("sm_80", "sm_90", "sm_100")
TARGET = f"cuda:{','.join(ARCHS)}"
TYPICAL = {
    "te": "then_b",
    "scheduled": "threadIdx.x",
    "tir": "call_extern",
    "cuda": "__global__",
    "ptx": ".visible .entry",
    "sass": "EXIT",
}

pytestmark = mark.skipif(compilers.find() is None, reason="needs nvcc or NVRTC")


@fixture(scope="module")
def library(tmp_path_factory):
    return export(WORKLOADS, tmp_path_factory.mktemp("cuda") / "lib.so", TARGET)


def emulating(folder):
    """A device that runs the source of the library's kernels on the CPU."""
    chosen = [schedule(workload, resolve(TARGET)) for workload in WORKLOADS]
    functions = [builder._lower(one, symbol(i)) for i, one in enumerate(chosen)]
    return OnCuda(None, Emulated.of(functions, folder)).running()


@mark.slow
def test_kernels_of_a_library_write_the_right_bits_only(library, tmp_path):
    with emulating(tmp_path):
        for kernel in load(library).values():
            results = verify_kernel(OnDevice(kernel))
            assert {result.check for result in results} == set(CHECKS) - {"bounds"}
            assert [result for result in results if not result.passed] == []


@mark.slow
def test_verify_of_the_command_line_runs_on_the_device(library, tmp_path):
    with emulating(tmp_path):
        assert cli.run_json("verify", library, "--check", "random")["passed"]


def test_arrays_of_any_layout_are_taken_to_the_device(tmp_path):
    with emulating(tmp_path):
        kernel = te_select.compile(WORKLOADS[0], TARGET)
        on_device = partial(with_numpy(kernel), out=np.empty(4099, np.float32))
        rng = np.random.default_rng(0)
        cond = rng.integers(0, 2, 4099).astype(bool)
        sides = rng.random((4099, 2), np.float32)
        out = on_device(cond, sides[:, 0], sides[::-1, 1])
        assert np.array_equal(out, np.where(cond, sides[:, 0], sides[::-1, 1]))
        with raises(te_select.DTypeError, match="cond != 0"):
            on_device(cond.astype("f4"), sides[:, 0], sides[:, 1])
        with raises(ArgumentError, match="then has shape"):
            on_device(cond, sides, sides[:, 1])


def test_verify_without_a_device_fails_and_says_why(library):
    with fake_driver():
        said = "the kernel cannot be run here: the NVIDIA driver does not start"
        assert said in cli.refused("verify", library, code=1)


def test_library_holds_machine_code_for_each_arch_and_no_source(library):
    image = library.read_bytes()
    for i, workload in enumerate(WORKLOADS):
        assert b".visible .entry " + symbol(i).encode() in image  # PTX, of the newest
        assert workload.name.encode() in image
    assert image.count(b".target sm_100") == 1
    elf = image.count(b"\x7fELF")
    assert elf == 1 + len(ARCHS)  # the library itself, and machine code for each
    for text in (b"__global__", b"te_select_scalars", b"#pragma", b"template"):
        assert text not in image
    manifest = beside(library)
    assert manifest["target"] == {
        "name": TARGET,
        "kind": "cuda",
        "archs": list(ARCHS),
        "cpu_features": [],
    }
    assert manifest["components"][3]["license"] == "LicenseRef-NVIDIA-CUDA-EULA"
    assert manifest["versions"]["cuda_compiler"] == compilers.describe()


def test_library_needs_no_tvm_no_compiler_and_no_driver(library):
    script = f"""
        import sys
        for name in ("tvm", "cuda", "triton", "cupy"):
            sys.modules[name] = None
        import te_select
        library = te_select.load({str(library)!r})
        maps = open("/proc/self/maps").read()
        print(len(library), "libcuda" in maps, "libtvm_compiler" in maps, "nvrtc" in maps)
    """
    said = python(script, PATH="/nonexistent", CC="")
    assert said == f"{len(WORKLOADS)} False False False\n"
    needed = output("ldd", library)
    assert "libcud" not in needed and "libgomp" not in needed


def test_same_workloads_give_the_same_bytes(tmp_path):
    paths = [export(WORKLOADS[:2], tmp_path / name / "lib.so", "cuda:sm_90") for name in "ab"]
    assert paths[0].read_bytes() == paths[1].read_bytes()


@mark.parametrize("level", KINDS["cuda"].sources)
def test_source_is_shown_in_each_form(level, library):
    kernel = load(library)[WORKLOADS[1].name]
    if level == "sass":
        try:
            text = kernel.source(level)
        except te_select.ToolchainError as error:
            skip(str(error))
    text = kernel.source(level)
    assert TYPICAL[level] in text
    if level == "sass":
        assert all(f"// {arch}" in text for arch in ARCHS)
    assert text == te_select.compile(WORKLOADS[1], TARGET, tuning_logs=False).source(level)


def test_level_of_another_kind_of_machine_is_refused():
    kernel = te_select.compile(WORKLOADS[0], "cuda:sm_90")
    with raises(ArgumentError, match=r"cuda:sm_90; expected one of te, .* sass"):
        kernel.source("asm")


def test_inspect_says_for_which_devices_there_is_code(library):
    done = cli.run("inspect", library)
    assert done.exit_code == 0, done.output
    assert "archs         [sm_80,sm_90,sm_100]" in done.output
