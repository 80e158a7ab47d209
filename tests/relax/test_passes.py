"""The passes: which wheres they replace, why others are left, and that the bits stay the same."""

import numpy as np
import tvm
from pytest import fixture, mark, raises
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R

from te_select import ArgumentError, TargetError, Workload
from te_select.relax import UseSelect, UseUnfusedSelect, passes, report
from te_select.relax.passes import kernel_target
from tests.support import python, shapes
from tests.support.relax_models import TARGET, expected, operands, reasons, run, where_module

LONG = shapes("512 512 512")
OTHER = "native"  # another target that this machine runs
CASES = [
    (*LONG, "float32"),
    (*shapes("1,1,16,16 2,3,16,16 ()"), "float32"),
    (*shapes("300,1 300,5 5"), "bool"),
    (*shapes("n n n"), "bfloat16"),
    (*shapes("b,1,s b,h,s ()"), "float64"),
    ((("n", 2), 1), (("n", 2), "m"), (1, "m"), "float16"),
    (*shapes("512 1 512"), "float8_e4m3fn"),
    (*shapes("512 1 512"), "float8_e5m2"),
    *((*LONG, f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
]
PIPELINES = {  # each of TVM's, up to where UseUnfusedSelect comes
    "zero": relax.get_pipeline("zero"),
    "static_shape_tuning": relax.get_pipeline(
        "static_shape_tuning", total_trials=0, target=TARGET, work_dir="logs"
    ),
    "legalize_passes": tvm.transform.Sequential(relax.pipeline.legalize_passes(TARGET)),
}


def decisions(mod):
    return [(place, done) for place, done, _ in report(mod)]


@mark.parametrize("case", CASES, ids=lambda case: f"{case[3]}-{len(case[1])}")
def test_where_runs_our_kernel_and_gives_the_same_bits(case):
    arrays = operands(*case)
    mod = UseSelect(TARGET)(where_module(*case))
    ((place, done, kernel),) = report(mod)
    assert (place, done, kernel[:7]) == ("main#0", "replaced", "select_")
    assert kernel in str(mod["main"])
    assert run(mod, TARGET, arrays) == expected(arrays) == run(where_module(*case), TARGET, arrays)


@mark.parametrize("case", [(*LONG, "float32"), (("b", 1), ("b", "n"), (), "int8")])
@mark.parametrize("pipeline", PIPELINES)
def test_unfused_where_of_a_pipeline_runs_our_kernel(pipeline, case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    arrays = operands(*case)
    with TARGET:
        mod = UseUnfusedSelect(TARGET)(PIPELINES[pipeline](where_module(*case)))
    assert decisions(mod) == [("main#0", "replaced")]
    assert [str(name.name_hint) for name in mod.get_global_vars()] == ["main"]
    assert run(mod, TARGET, arrays) == expected(arrays)


def fused(c, x, y):
    return relax.op.exp(relax.op.where(c, x, y))


def two(c, x, y):
    chosen = relax.op.where(c, x, y)
    return relax.op.sum(relax.op.where(c, y, chosen), axis=0, keepdims=True)


def test_where_that_is_fused_with_others_is_left():
    case = ((16, 64), (16, 64), ())
    arrays = operands(*case)
    before = relax.get_pipeline("zero")(where_module(*case, build=fused))
    mod = UseUnfusedSelect(TARGET)(before)
    assert report(mod) == [
        ("main#0", "left", "it is fused with other operators, or scheduled already")
    ]
    assert run(mod, TARGET, arrays) == run(before, TARGET, arrays)


def test_wheres_are_numbered_and_equal_ones_share_a_kernel():
    case = ((16, 64), (16, 64), (16, 64))
    mod = UseSelect(TARGET)(where_module(*case, build=two))
    kernels = {kernel for _, _, kernel in report(mod)}
    assert decisions(mod) == [("main#0", "replaced"), ("main#1", "replaced")]
    assert len(kernels) == 1 and len(mod.attrs["external_mods"]) == 1


def test_wheres_of_each_function_are_numbered_from_0():
    mod = where_module((16, 64), (16, 64), (16, 64))
    mod["other"] = where_module((16, 64), (16, 64), ())["main"].with_attr("global_symbol", "other")
    assert sorted(decisions(UseSelect(TARGET)(mod))) == [
        ("main#0", "replaced"),
        ("other#0", "replaced"),
    ]


def test_wanted_decides_place_by_place():
    asked = []

    def wanted(place, workload):
        asked.append((place, workload))
        return place.endswith("#1")

    mod = UseSelect(TARGET, wanted=wanted)(where_module((16, 64), (16, 64), (), build=two))
    assert decisions(mod) == [("main#0", "left"), ("main#1", "replaced")]
    assert reasons(mod) == ["it is not wanted"]
    assert asked[0] == (
        "main#0",
        Workload((16, 64), (16, 64), (), auto_broadcast="multidirectional"),
    )


@fixture
def exported(monkeypatch):
    """What the passes ask of `export`: how many workloads, target, logs and options."""
    asked = []
    original = passes.export

    def export(workloads, path, target, tuning_logs, **options):
        asked.append((len(workloads), target, tuning_logs, options))
        return original(workloads, path, target, tuning_logs, **options)

    monkeypatch.setattr("te_select.relax.passes.export", export)
    return asked


def test_logs_and_target_are_those_of_the_kernels(exported):
    UseSelect(OTHER, tuning_logs=False)(where_module(*LONG))
    assert exported == [(1, kernel_target(OTHER), False, {"static": "object"})]


@mark.parametrize(
    "shapes, reason",
    [
        (((4,), (4,), (4,)), "out has 4 elements; a kernel gains from 256 on"),
        (((0, 4), (0, 4), ()), "out has 0 elements; a kernel gains from 256 on"),
    ],
)
def test_where_that_is_too_small_is_left(shapes, reason):
    arrays = operands(*shapes)
    mod = UseSelect(TARGET)(where_module(*shapes))
    assert reasons(mod) == [reason]
    assert "external_mods" not in mod.attrs
    assert run(mod, TARGET, arrays) == expected(arrays)


def test_where_of_256_elements_is_the_smallest_that_is_replaced():
    sizes = ((n,) for n in (255, 256))
    mods = [UseSelect(TARGET)(where_module(shape, shape, shape)) for shape in sizes]
    assert [done for mod in mods for _, done in decisions(mod)] == ["left", "replaced"]


def test_where_of_constants_is_left_to_be_folded():
    def build(_c, x, _y):
        big = relax.const(np.ones(512, "float32"))
        return relax.op.add(x, relax.op.where(relax.const(np.ones(512, bool)), big, big))

    assert reasons(UseSelect(TARGET)(where_module(*LONG, build=build))) == [
        "its operands are constants: FoldConstant computes it, in a dataflow block"
    ]


def test_constant_beside_variables_stays_an_operand():
    value = np.array(-1e9, "float32")

    def build(c, x, _y):
        return relax.op.where(c, x, relax.const(value))

    arrays = operands(*LONG)
    mod = UseSelect(TARGET)(where_module(*LONG, build=build))
    assert decisions(mod) == [("main#0", "replaced")]
    assert run(mod, TARGET, arrays) == expected([*arrays[:2], value])


@I.ir_module
class OfUnknownShape:
    @R.function
    def main(
        c: R.Tensor(ndim=1, dtype="bool"),
        x: R.Tensor((512,), "float32"),
        n: R.Tensor((), "float32"),
    ) -> R.Tensor(ndim=1, dtype="float32"):
        y: R.Tensor(ndim=1, dtype="float32") = R.where(c, x, n)
        return y


def test_where_of_unknown_shape_is_left():
    assert reasons(UseSelect(TARGET)(OfUnknownShape)) == ["the shape of cond is not known"]


def test_two_names_on_one_axis_are_left():
    mod = where_module(("n",), ("m",), ())
    (reason,) = reasons(UseSelect(TARGET)(mod))
    assert reason == "the shape of out is not known because two names meet on an axis"


def test_element_type_that_no_kernel_has_is_left():
    (reason,) = reasons(UseSelect(TARGET)(where_module(*LONG, "int4")))
    assert "int4" in reason and "expected one of bool, int8" in reason


@mark.parametrize(
    "target, left",
    [({"kind": "cuda", "arch": "sm_80"}, ["cond lies on cuda"]), ({"kind": "llvm"}, [])],
)
def test_tensor_on_a_device_without_our_kernels_is_left(target, left):
    device = I.vdevice(target, 0, "global")
    there = relax.Var("x", relax.TensorType((512,), "float32", vdevice=device))
    cond = relax.Var("c", relax.TensorType((512,), "bool", vdevice=device))
    builder = relax.BlockBuilder()
    with builder.function("main", [cond, there]):
        builder.emit_func_output(builder.emit(relax.op.where(cond, there, there)))
    made = UseSelect(TARGET)(builder.get())
    assert reasons(made) == left and len(report(made)) == 1


@mark.parametrize("attribute", ["Codegen", "Composite", "Primitive"])
def test_functions_for_other_compilers_are_left_untouched(attribute):
    mod = where_module(*LONG)
    variable = mod.get_global_var("main")
    mod[variable] = mod["main"].with_attr(attribute, "another")
    made = UseSelect(TARGET)(mod)
    assert report(made) == [] and "select_" not in str(made["main"])


def test_pass_says_that_a_where_has_the_form_for_the_other():
    mod = where_module(*LONG)
    (early,) = reasons(UseUnfusedSelect(TARGET)(mod))
    (late,) = reasons(UseSelect(TARGET)(relax.transform.LegalizeOps()(mod)))
    assert early.startswith("it is not legalized: use UseSelect")
    assert late.startswith("it is legalized: run UseSelect before LegalizeOps")


def half_replaced(place):
    """Two equal wheres, of which one has a kernel."""
    return UseSelect(TARGET, wanted=lambda each, _: each == place)(where_module(*LONG, build=two))


@mark.parametrize("place", ["main#0", "main#1"])
def test_kernel_of_an_earlier_pass_serves_equal_wheres(place):
    arrays = operands(*LONG)
    mod = UseSelect(TARGET)(half_replaced(place))
    assert decisions(mod) == [("main#0", "replaced"), ("main#1", "replaced")]
    assert len(mod.attrs["external_mods"]) == 1
    assert run(mod, TARGET, arrays) == run(where_module(*LONG, build=two), TARGET, arrays)


@mark.parametrize("place", ["main#0", "main#1"])
def test_kernel_of_an_earlier_pass_serves_no_other_target(place):
    mod = UseSelect(OTHER)(half_replaced(place))
    assert [where for where, done in decisions(mod) if done == "replaced"] == [place]
    assert reasons(mod) == [
        f"an earlier pass put its kernel into the module, for {kernel_target(TARGET)}"
    ]


def test_later_pass_adds_kernels_and_keeps_what_is_reported():
    def three(c, x, y):
        zero = relax.const(0.0)
        return relax.op.concat([relax.op.where(c, *xy) for xy in ((x, y), (x, zero), (zero, y))], 0)

    arrays = operands(*LONG)
    mod = passed = where_module(*LONG, build=three)
    for k, target in enumerate((TARGET, OTHER, OTHER)):
        passed = UseSelect(target, wanted=lambda place, _, k=k: place == f"main#{k}")(passed)
        done = [("replaced" if place <= k else "left") for place in range(3)]
        assert decisions(passed) == [(f"main#{place}", what) for place, what in enumerate(done)]
        assert len(passed.attrs["external_mods"]) == k + 1
    assert run(passed, TARGET, arrays) == run(mod, TARGET, arrays)


def test_target_around_the_making_of_the_pass_is_taken(exported):
    with TARGET:
        made = UseSelect()
    made(where_module(*LONG))
    made = UseSelect()
    with TARGET:
        made(where_module(*LONG))
    assert [target for _, target, _, _ in exported] == [kernel_target(TARGET)] * 2


def test_report_of_a_compiled_model_is_refused():
    made = tvm.compile(where_module((4,), (4,), (4,)), TARGET)
    with raises(ArgumentError, match="mod is a VMExecutable; expected the IRModule"):
        report(made)


@mark.parametrize(
    "target, message",
    [
        ("cuda:sm_90", "target 'cuda:sm_90' cannot have kernels inside a model; expected one of"),
        ("cuda", "target 'cuda' cannot have kernels inside a model"),
        ('{"kind": "cuda", "arch": "sm_90"}', "cannot have kernels inside a model"),
        (tvm.target.Target("c"), "target has the kind 'c'; expected llvm or cuda"),
        ("znver77", "target 'znver77' is not known"),
        (
            tvm.target.Target({"kind": "llvm", "mtriple": "x86_64-apple-darwin"}),
            "mtriple 'x86_64-apple-darwin' is not supported",
        ),
        (
            tvm.target.Target({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mabi": "ilp32"}),
            "expected 'lp64d'",
        ),
    ],
)
@mark.parametrize("make", [UseSelect, UseUnfusedSelect])
def test_target_without_kernels_is_refused_by_the_pass(make, target, message):
    with raises(TargetError, match=message):
        make(target)


def test_importing_it_needs_tvm_and_nothing_of_ours_imports_it():
    code = (
        "import sys, te_select, te_select.compiler, te_select.cli.verbs, te_select.tuning; "
        "print([m for m in sys.modules if m.startswith(('te_select.relax', 'te_select.dlight'))])"
    )
    assert python(code) == "[]\n"
