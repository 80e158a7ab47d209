"""Which functions of TIR are a where, which calls are replaced, and which functions stay."""

import pytest
import tvm_ffi
from tvm import relax
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

from te_select import ArgumentError, Workload
from te_select.relax import UseSelect, UseUnfusedSelect, report
from tests.support.relax_models import TARGET, reasons, where_module

LONG = ((512,), (512,), (512,))
ROW = relax.TensorType((512,), "float32")


with TARGET:
    PLAIN = relax.transform.LegalizeOps()(where_module(*LONG))["where"]


@T.prim_func(private=True, s_tir=True)
def of_several(
    c: T.Buffer((512,), "bool"),
    x: T.Buffer((512,), "float32"),
    y: T.Buffer((512,), "float32"),
    other: T.Buffer((512,), "float32"),
    out: T.Buffer((512,), "float32"),
):
    for i in range(512):
        with T.sblock("T_where"):
            k = T.axis.spatial(512, i)
            out[k] = T.Select(c[k], x[k], y[k])


def calling(function, *outputs):
    """A module whose main function calls a function of TIR by the name `where`."""
    types = ("bool", "float32", "float32")
    given = [
        relax.Var(name, relax.TensorType((512,), dtype))
        for name, dtype in zip("cxy", types, strict=True)
    ]
    builder = relax.BlockBuilder()
    callee = builder.add_func(function, "where")
    with builder.function("main", given):
        call = relax.call_tir(callee, relax.Tuple(given), list(outputs))
        builder.emit_func_output(builder.emit(call))
    return builder.get()


def test_where_that_is_one_of_several_outputs_is_left():
    assert reasons(UseUnfusedSelect(TARGET)(calling(of_several, ROW, ROW))) == [
        "it is one of several outputs"
    ]


@I.ir_module
class OfTwoCallers:
    @T.prim_func(private=True, s_tir=True)
    def where(
        c: T.Buffer((512,), "bool"),
        x: T.Buffer((512,), "float32"),
        out: T.Buffer((512,), "float32"),
    ):
        for i in range(512):
            with T.sblock("T_where"):
                k = T.axis.spatial(512, i)
                out[k] = T.Select(c[k], x[k], x[k])

    @T.prim_func(s_tir=True)
    def another(
        c: T.Buffer((512,), "bool"),
        x: T.Buffer((512,), "float32"),
        out: T.Buffer((512,), "float32"),
    ):
        OfTwoCallers.where(c.data, x.data, out.data)

    @R.function
    def main(c: R.Tensor((512,), "bool"), x: R.Tensor((512,), "float32")):
        out = R.call_tir(OfTwoCallers.where, (c, x), out_ty=R.Tensor((512,), "float32"))
        return out


def test_function_that_others_may_call_is_kept():
    public = calling(PLAIN.with_attr("global_symbol", "where"), ROW)
    made = [UseUnfusedSelect(TARGET)(mod) for mod in (calling(PLAIN, ROW), public, OfTwoCallers)]
    names = [sorted(str(each.name_hint) for each in mod.get_global_vars()) for mod in made]
    assert names == [["main"], ["main", "where"], ["another", "main", "where"]]
    assert [report(mod)[0][1] for mod in made] == ["replaced"] * 3


def test_kernel_gives_way_to_a_function_of_its_name():
    name = Workload(*LONG, auto_broadcast="multidirectional").name
    mod = where_module(*LONG)
    mod[name] = PLAIN.with_attr("global_symbol", name)
    assert reasons(UseSelect(TARGET)(mod)) == [
        f"the module has a function of its kernel's name, {name}"
    ]


def test_call_of_a_function_that_is_a_value_stays():
    function = relax.Var("f", relax.FuncType.opaque_func())
    given = relax.Var("x", ROW)
    builder = relax.BlockBuilder()
    with builder.function("main", [function, given]):
        call = relax.call_dps_packed(function, relax.Tuple([given]), ROW)
        builder.emit_func_output(builder.emit(call))
    mod = builder.get()
    made = UseSelect(TARGET)(mod)
    assert report(made) == [] and tvm_ffi.structural_equal(made["main"], mod["main"])


def test_error_in_wanted_is_no_reason_to_leave_a_where():
    def wanted(_place, _workload):
        raise ArgumentError("by wanted")

    with pytest.raises(RuntimeError, match="by wanted"):
        UseSelect(TARGET, wanted=wanted)(where_module(*LONG))
