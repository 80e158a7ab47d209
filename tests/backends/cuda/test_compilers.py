"""Which CUDA compiler is used, and what is asked of it; none need be installed."""

from shutil import copytree

from pytest import fixture, importorskip, mark, raises

from te_select import TargetError, ToolchainError
from te_select.backends.cuda import compilers, nvcc, nvrtc
from te_select.backends.targets import resolve
from tests.support.cuda_standin import fake_driver


@fixture
def recorded(monkeypatch):
    """The archs that NVRTC is asked for; it makes texts of them."""
    asked = []

    def compile_for(_source, arch):
        asked.append(arch)
        return f"cubin {arch}".encode(), f"ptx {arch}"

    monkeypatch.setattr("te_select.backends.cuda.compilers.COMPILERS", (nvrtc,))
    monkeypatch.setattr("te_select.backends.cuda.nvrtc.is_installed", lambda: True)
    monkeypatch.setattr("te_select.backends.cuda.nvrtc.compile_for", compile_for)
    monkeypatch.setattr(nvrtc, "archs", lambda: ("sm_100", "sm_90", "sm_90a", "sm_120"))
    compilers._compiled.cache_clear()
    return asked


def test_ptx_is_of_the_newest_arch_in_whatever_order(recorded):
    made = compilers.compile_cuda("source", ["sm_100", "sm_90"])
    assert made.ptx == "ptx sm_100"
    assert made.cubins == {"sm_100": b"cubin sm_100", "sm_90": b"cubin sm_90"}
    assert compilers.compile_cuda("source", ["sm_100", "sm_90"]) is made
    assert recorded == ["sm_100", "sm_90"]  # the second time nothing is compiled


@mark.usefixtures("recorded")
def test_known_archs_are_listed_oldest_first():
    assert compilers.archs() == ("sm_90", "sm_100", "sm_120")


@mark.usefixtures("recorded")
def test_devices_that_the_compiler_does_not_know_are_left_out():
    with fake_driver(90, 75, 120):
        assert resolve("cuda").archs == ("sm_90", "sm_120")
    with fake_driver(75), raises(TargetError, match=r"is Fake GPU here, .* sm_75; expected"):
        resolve("cuda")


@mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_programs_are_found_where_the_toolkit_is(variable, tmp_path, monkeypatch):
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "toolkit" / "bin" / "nvcc"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv(variable, str(tmp_path / "toolkit"))
    if variable == "CUDA_HOME":  # it comes first
        monkeypatch.setenv("CUDA_PATH", str(copytree(tmp_path / "toolkit", tmp_path / "other")))
    nvcc.utility.cache_clear()
    assert nvcc.utility(program.name) == str(program)
    nvcc.utility.cache_clear()
    on_path = program.rename(tmp_path / program.name)
    program.symlink_to(on_path)
    assert nvcc.utility(program.name) == str(on_path)
    nvcc.utility.cache_clear()


def test_search_that_takes_too_long_finds_no_nvcc(monkeypatch):
    """The search of NVIDIA's package asks a process, and gives up after 10 s."""
    pathfinder = importorskip("cuda.pathfinder")

    def slow(_name):
        raise ChildProcessError("Canary probe child process timed out after 10.0 seconds.")

    monkeypatch.setattr(pathfinder, "find_nvidia_binary_utility", slow)
    assert nvcc.utility.__wrapped__("no such program") is None


def test_nvcc_comes_first_and_the_report_names_gpus(monkeypatch):
    for each in (nvcc, nvrtc):
        monkeypatch.setattr(each, "is_installed", lambda: True)
    assert compilers.find() is nvcc
    monkeypatch.setattr(compilers, "first_line", lambda *words: words[1])
    with fake_driver(90):
        assert compilers.environment()["gpus"] == {
            "device 0": "Fake GPU, sm_90, 1 GiB, L2 1 MiB",
            "driver": "--query-gpu=driver_version",
        }


@mark.parametrize("wrong", [[], ["90"], ["sm_90", "volta"], ["compute_90"], ["sm_90;rm"]])
def test_names_of_no_arch_are_refused(wrong):
    with raises(TargetError, match="expected names such as sm_90"):
        compilers.compile_cuda("source", wrong)


def test_missing_compiler_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr("te_select.backends.cuda.nvcc.utility", lambda name: None)
    monkeypatch.setattr("te_select.backends.cuda.nvrtc.bindings", lambda: None)
    with raises(ToolchainError, match="nvidia-cuda-nvrtc"):
        compilers.compile_cuda("source", ["sm_90"])
    assert compilers.find() is None and compilers.archs() == ()


def test_missing_disassembler_is_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr("te_select.backends.cuda.nvcc.utility", lambda name: None)
    with raises(ToolchainError, match="nvdisasm"):
        nvcc.disassemble(b"")
