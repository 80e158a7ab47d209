"""What ``native`` stands for on a machine that is not this one."""

import pytest

from te_select.backends.cpu import target as cpu_target
from te_select.backends.targets import resolve
from te_select.runtime.call.cpu import features

NEOVERSE_N1 = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop "
    "asimddp ssbs"
)


@pytest.fixture
def machine(monkeypatch):
    """Makes this process believe that it runs on another machine."""

    def fake(name, cpu, has):
        monkeypatch.setattr("platform.machine", lambda: name)
        monkeypatch.setattr(cpu_target.codegen, "llvm_get_system_cpu", lambda: cpu)
        monkeypatch.setattr(features, "features", lambda: frozenset(has.split()))

    return fake


def test_native_on_arm_is_the_core_that_llvm_names(machine):
    machine("aarch64", "neoverse-n1", NEOVERSE_N1)
    native = resolve("native")
    assert (native.name, native.model) == ("aarch64:neoverse-n1", "neoverse-n1")
    assert {"asimd", "asimddp", "atomics"} <= set(native.cpu_features)
    assert native.tvm.attrs["mtriple"] == "aarch64-linux-gnu"
    assert not features.missing(native.cpu_features)


def test_native_on_arm_leaves_out_what_a_hypervisor_hides(machine):
    machine("aarch64", "neoverse-n1", NEOVERSE_N1.replace(" asimddp", ""))
    native = resolve("native")
    assert "asimddp" not in native.cpu_features and "asimdrdm" in native.cpu_features
    assert native.isa.name == "aarch64" and "-dotprod" in native.tvm.attrs["mattr"]


def test_arm_without_more_features_is_the_baseline(machine):
    machine("aarch64", "newer-than-llvm", "fp asimd")
    native = resolve("native")
    assert native.name == "aarch64"
    assert not features.lacking("aarch64", native.cpu_features)
    assert features.lacking("aarch64", ["asimddp"]) == ["asimddp"]
    assert features.lacking("x86_64", []) == ["the x86_64 instruction set"]


def test_cpu_that_hides_its_number_has_the_features_it_shows(machine, monkeypatch):
    """A hypervisor shows the number of Rocket Lake, which has no AVX512-FP16."""
    shown = {"avx512vbmi", "avx512vbmi2", "avx512vpopcntdq", "avx512bitalg", "avx512fp16", "gfni"}
    shown |= {name for level in cpu_target.X86_64.levels for name in level.features}
    present = dict.fromkeys(shown, True)
    monkeypatch.setattr(cpu_target.tvm_ffi, "get_global_func", lambda _name: lambda: present)
    machine("x86_64", "rocketlake", "sse2")
    native = resolve("native")
    assert native.tvm.attrs["mcpu"] == "rocketlake"
    assert list(native.tvm.attrs["mattr"]) == ["+avx512fp16", "-prefer-256-bit"]
    assert "avx512_fp16" in native.cpu_features
    beyond = "avx512vbmi-avx512vbmi2-avx512vpopcntdq-avx512bitalg-avx512fp16-gfni"
    assert native.records == native.model == f"x86-64-v4-{beyond}"
    del present["avx512fp16"]
    assert resolve("native").name == "rocketlake"
    del present["gfni"]  # hidden, which is no contradiction
    assert resolve("native").model == "rocketlake"
    assert list(resolve("native").tvm.attrs["mattr"]) == ["-gfni", "-prefer-256-bit"]
