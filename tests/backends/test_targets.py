import json
import re

import tvm_ffi
from pytest import mark, raises

from te_select import TargetError
from te_select.backends.cpu import target as cpu_target
from te_select.backends.targets import resolve, resolve_each
from te_select.compiler import sources
from te_select.schedules.cpu.isa import X86_64, features_of
from tests.support import flat
from tests.support.cuda_standin import fake_driver
from tests.support.machines import on_x86_64


def test_native_is_this_cpu_with_features_that_it_has():
    from pathlib import Path

    native = resolve("native")
    text = Path("/proc/cpuinfo").read_text(encoding="ascii")
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)[1].split()
    assert native.name != "native"
    assert set(native.cpu_features) <= set(flags)


@mark.parametrize("name", ["x86-64-v3", "aarch64", "riscv64:rva23", "x86-64-v2,x86-64-v3"])
def test_spaces_around_a_name_change_nothing(name):
    spaced, plain = resolve(f" {name}\n"), resolve(name)
    assert (spaced.name, str(spaced.tvm)) == (plain.name, str(plain.tvm))


def test_library_of_several_levels_needs_what_the_lowest_does():
    assert resolve("x86-64-v2,x86-64-v3").cpu_features == resolve("x86-64-v2").cpu_features


@mark.parametrize(
    "form", ['{"kind": "llvm", "mcpu": "znver5"}', {"kind": "llvm", "mcpu": "znver5"}]
)
def test_json_target_equals_the_cpu_name(form):
    assert resolve(form).name == "znver5"
    assert resolve(form).cpu_features == resolve("znver5").cpu_features


def test_json_target_with_attributes_keeps_them_in_its_name():
    target = resolve({"kind": "llvm", "mcpu": "x86-64-v3", "mattr": ["-bmi2"]})
    assert "bmi2" not in target.cpu_features
    assert resolve(target.name).cpu_features == target.cpu_features


@mark.parametrize(
    "wrong",
    [
        "",
        "znver55",
        "znver55 ",
        " x86-64-v5",
        "i386",
        "nonsense",
        "{",
        None,
        3,
        [],
        ["native"],
        '{"kind": "nope"}',
        '{"kind": "c"}',
        '{"kind": "cuda"}',
        '{"tag": "arm/rasp3b"}',
        "cudax",
        "cuda:",
        "cuda:sm_1",
        "cuda:sm_80;sm_90",
        "cuda:90",
        '{"kind": "cuda", "arch": "nope"}',
        '{"kind": "llvm", "mattr": [["+avx2"]]}',
        {"kind": ["llvm"]},
        {"mcpu": "x86-64"},
        {"kind": "cuda", "arch": 3},
        {3: 4},
        *(
            {"kind": "llvm", name: value}
            for name, value in (
                ("mattr", 3),
                ("mattr", "+avx2"),
                ("mcpu", ["x"]),
                ("num-cores", "many"),
                # LLVM would end the process at these.
                ("mtriple", "garbage"),
                ("mtriple", "x86_64-pc-windows-msvc"),
                ("mattr", ["-64bit"]),
                ("mattr", ["+nope"]),
                ("mattr", ["avx2"]),
            )
        ),
    ],
)
def test_unknown_target_is_an_error_that_lists_what_is_known(wrong):
    with raises(TargetError) as error:
        resolve(wrong)
    said = str(error.value)
    assert "\n" not in said
    assert "expected" in said or "is not a TVM target" in said
    if not isinstance(wrong, str):
        assert "did you mean" not in said
    elif wrong.startswith(("z", " x")):
        assert said.startswith(f"target {wrong.strip()!r} is not known")


@mark.parametrize(
    "target, model",
    [
        ("aarch64", ""),
        ("riscv64", ""),
        ("riscv64:rva23", ""),
        ("x86-64", ""),
        ("x86-64-v3", ""),
        ("x86-64-v2,x86-64-v3", ""),
        ("znver4", "znver4"),
        ("aarch64:neoverse-n1", "neoverse-n1"),
        ("cuda:sm_90", ""),
    ],
)
def test_target_of_many_machines_is_no_model(target, model):
    """Knobs that a machine decides are left to it, unless there is one model of machine."""
    assert resolve(target).model == model


@mark.parametrize(
    "text, meant",
    [
        ("amd64", "x86-64( or .*)?"),
        ("x86-64-v1", "x86-64( or .*)?"),
        ("x86_64", "x86-64( or .*)?"),
        ("x86_64-v3", "x86-64-v3"),
        ("x86_64_v3", "x86-64-v3"),
        ("ARM64", "aarch64( or .*)?"),
        ("armv8", "aarch64"),
        *((name, "riscv64") for name in ("riscv64gc", "rv64gc", "generic-rv64")),
        *((name, "riscv64:rva23") for name in ("rva23", "rva23u64", "rv64gcv")),
        ("ZNVER5", "znver5"),
        ("znver55", "znver5( or .*)?"),
        ("llvm -keys=cpu -mcpu=Znver4 -num-cores=2", "znver4"),
        ("llvm -mcpu=neoverse-n1", "aarch64:neoverse-n1"),
        ("sm_90", "cuda:sm_90"),
    ],
)
def test_other_names_of_what_is_known_are_suggested(text, meant):
    with raises(TargetError, match=rf"; did you mean {meant}\?$"):
        resolve(text)


@on_x86_64
@mark.parametrize(
    "text, name",
    [
        ("llvm", "x86-64"),
        ("llvm -mcpu=skylake", "skylake"),
        ("llvm -mcpu x86-64-v3", "x86-64-v3"),
        (" llvm  -mcpu= native ", "native"),
        ("llvm,x86-64-v2", "x86-64,x86-64-v2"),
        ("llvm -mcpu=x86-64-v3, llvm", "x86-64,x86-64-v3"),
    ],
)
def test_llvm_as_tvm_writes_it_is_the_baseline_or_a_cpu(text, name):
    assert resolve(text).name == resolve(name).name
    assert list(resolve_each(f"{text},aarch64")) == ["x86_64", "aarch64"]


def test_llvm_is_of_the_instruction_set_of_this_machine(monkeypatch):
    monkeypatch.setattr("te_select.backends.cpu.target.platform.machine", lambda: "aarch64")
    assert resolve("llvm").name == "aarch64"
    assert resolve("llvm -mcpu=neoverse-n1").name == "aarch64:neoverse-n1"
    assert resolve("x86-64-v3").tvm.attrs["mtriple"] == "x86_64-linux-gnu"


@mark.parametrize(
    "name, archs",
    [
        ("cuda:sm_80", ("sm_80",)),
        ("cuda:sm_90,sm_80, sm_100", ("sm_80", "sm_90", "sm_100")),
        ("cuda:sm_90,sm_90", ("sm_90",)),
        ('{"kind": "cuda", "arch": "sm_90"}', ("sm_90",)),
        ({"kind": "cuda", "arch": "sm_86", "max_num_threads": 1024}, ("sm_86",)),
    ],
)
def test_cuda_targets_name_their_architectures_oldest_first(name, archs):
    target = resolve(name)
    assert (target.kind, target.archs) == ("cuda", archs)
    assert target.name == f"cuda:{','.join(archs)}"
    assert str(target.tvm.attrs["arch"]) == archs[-1]
    assert resolve(target.name).archs == archs


def test_cuda_is_the_local_gpus():
    with fake_driver(90, 80, 90):
        assert resolve("cuda").name == "cuda:sm_80,sm_90"


def test_cuda_without_a_gpu_says_what_to_do():
    with fake_driver(), raises(TargetError, match=r"has none: .*such as cuda:sm_90"):
        resolve("cuda")


def test_cuda_with_a_gpu_that_is_not_supported_names_it():
    with fake_driver(3), raises(TargetError, match=r"Fake GPU here, of .* sm_03; expected"):
        resolve("cuda")


def test_fields_are_checked_before_tvm_sees_them(monkeypatch):
    monkeypatch.setattr("te_select.backends.targets.Target", None)
    with raises(TargetError, match="has the fields"):
        resolve({"kind": "llvm", "mfloat-abi": "hard"})


@on_x86_64
def test_native_without_hidden_features_is_made_from_its_name(monkeypatch):
    present = tvm_ffi.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()

    def hypervisor(_name):
        return lambda: {k: v for k, v in present.items() if not str(k).startswith("avx")}

    monkeypatch.setattr(cpu_target.codegen, "llvm_get_system_cpu", lambda: "x86-64-v4")
    with monkeypatch.context() as hidden:
        hidden.setattr("te_select.backends.cpu.target.tvm_ffi.get_global_func", hypervisor)
        native = resolve("native")
        assert "avx2" not in native.cpu_features
    again = resolve(native.name)
    assert (again.cpu_features, str(again.tvm)) == (native.cpu_features, str(native.tvm))
    workload = flat(64)
    text = sources.source(workload, native.name, None, "asm")
    assert "ymm" not in text and "zmm" not in text
    assert "mm" in sources.source(workload, "x86-64-v4", None, "asm").replace("xmm", "")


@mark.parametrize("cpu, feature", [("a64fx", "sve"), ("apple-m4", "sme")])
def test_vectors_of_no_fixed_length_are_switched_off(cpu, feature):
    assert feature not in features_of(resolve(f"aarch64:{cpu}").tvm)


@mark.parametrize("cpu", ["sapphirerapids", "graniterapids", "znver5", "diamondrapids"])
def test_manifest_names_every_feature_that_code_may_use(cpu):
    """LLVM has no others that touch vectors or general registers but for what is listed here."""
    target = resolve(cpu)
    llvm = features_of(target.tvm)
    named = {name for name, spelt in X86_64.features.items() if spelt in target.cpu_features}
    assert named == llvm & set(X86_64.features)
    assert llvm.isdisjoint({"ccmp", "cf", "zu", "ppx", "push2pop2", "movrs", "prefer-256-bit"})
    rest = {name for name in llvm - named if name.startswith(("avx", "sse", "bmi", "egpr", "n"))}
    arithmetic = {"avx512vnni", "avx512ifma", "avx512bf16", "avx512vp2intersect", "avxvnni"}
    arithmetic |= {"avxifma", "avxneconvert", "avxvnniint8", "avxvnniint16", "avx10.1"}
    assert rest - arithmetic - {"sse", "sse2", "nopl"} <= {n for n in rest if n.startswith("no-")}


@mark.parametrize(
    "target, said",
    [
        ("aarch64:nope", "'nope' is no CPU of aarch64 that is known; expected aarch64, or a CPU"),
        ("aarch64:", "'' is no CPU of aarch64"),
        ("riscv64:sifive-x280", "no CPU of riscv64 that is known; expected riscv64 or riscv64:r"),
        ("neoverse-n1", "did you mean aarch64:neoverse-n1"),
        ("x86-64:znver5", "expected a CPU of x86-64 by its name alone"),
        ("x86-64-v2,x86-64-v2", "holds 'x86-64-v2' twice; a list is of x86-64, x86-64-v2"),
        ("x86-64-v2,aarch64", "holds 'aarch64', and a library is for one instruction set"),
        ("aarch64,x86-64-v2", "holds 'x86-64-v2', and a library is for one instruction set"),
        ("riscv64,riscv64:x", "holds 'riscv64:x', which is no level; a list is of riscv64, risc"),
        ("aarch64,aarch64:neoverse-n1", "no level; aarch64 has one level, so it is given alone"),
        ("x86-64-v2,", "holds '', which is no level"),
        ("native,x86-64-v2", "holds 'native', which is no level"),
        ({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "x"}, "'x' is no CPU of aarch64"),
        ({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mattr": ["+sve"]}, "mattr"),
        ({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mabi": "ilp32"}, "expected 'lp64d'"),
    ],
)
def test_wrong_name_is_one_clear_line(target, said):
    with raises(TargetError) as caught:
        resolve(target)
    assert said in str(caught.value) and "\n" not in str(caught.value)


@mark.parametrize(
    "name", ["aarch64", "aarch64:neoverse-v2", "aarch64:apple-m4", "riscv64", "riscv64:rva23"]
)
def test_target_is_made_from_its_name_and_a_records_json(name):
    target = resolve(name)
    assert target.name == name
    for form in (target.name, json.loads(str(target.tvm))):
        again = resolve(form)
        assert (again.name, str(again.tvm)) == (target.name, str(target.tvm))
    assert "sve" not in " ".join(target.cpu_features)
