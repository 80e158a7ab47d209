"""Finds the wheres of a Relax module, and replaces those that gain by calls of kernels."""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import tvm
import tvm_ffi
from tvm import ir, relax, tirx
from tvm.relax.expr_functor import PyExprMutator, mutator
from tvm.target import Target

from te_select.base import kinds
from te_select.dlight.legalized import holds_where, legalized, workload_of
from te_select.errors import SelectError
from te_select.operator.broadcast import bound
from te_select.operator.workload import Workload

# Elements of out. A call took 0.96 of TVM's time up to 128 and 1.03 to 1.6 times it at 256 (Zen 3).
SMALL = 256

_TAKEN = ("Codegen", "Composite", "Primitive")  # attributes of functions

_WHERE, _CALL_TIR, _CALL_PACKED = (
    ir.Op.get(f"relax.{name}") for name in ("where", "call_tir", "call_dps_packed")
)

Wanted: TypeAlias = Callable[[str, Workload], bool]
# Gives cond, then and else of a call that may be replaced, and None for one that is not a where.
#
# Raises `LeftError` for one that is to be left as it is.
Finder: TypeAlias = Callable[[tvm.IRModule, relax.Call], list[ir.Expr] | None]


class LeftError(Exception):
    """The reason why a where is left as it is."""


def wheres(mod: tvm.IRModule, call: relax.Call) -> list[ir.Expr] | None:
    """Find ``R.where``, as a `Finder`."""
    if call.op.same_as(_WHERE):
        return list(call.args)
    callee = _callee(mod, call)
    if callee is not None and holds_where(callee):
        raise LeftError("it is legalized: run UseSelect before LegalizeOps, or UseUnfusedSelect")
    return None


def unfused(mod: tvm.IRModule, call: relax.Call) -> list[ir.Expr] | None:
    """Find calls of functions that compute a where alone, as a `Finder`."""
    if call.op.same_as(_WHERE):
        raise LeftError("it is not legalized: use UseSelect, or run LegalizeOps before")
    callee = _callee(mod, call)
    if callee is None or not holds_where(callee):
        return None
    found = legalized(callee)
    if found is None:
        raise LeftError("it is fused with other operators, or scheduled already")
    if not isinstance(call.ty, relax.TensorType):
        raise LeftError("it is one of several outputs")
    return [call.args[1].fields[k] for k in found.params]


def _callee(mod: tvm.IRModule, call: relax.Call) -> tirx.PrimFunc | None:
    """The function that a ``call_tir`` calls."""
    return mod[call.args[0]] if call.op.same_as(_CALL_TIR) else None


def _kernel(call: relax.Call) -> str | None:
    """The name of the function that a ``call_dps_packed`` calls; None for another call."""
    named = call.op.same_as(_CALL_PACKED) and isinstance(call.args[0], relax.ExternFunc)
    return str(call.args[0].global_symbol) if named else None


@mutator
class Replacement(PyExprMutator):  # type: ignore[misc]  # TVM is untyped
    """Replaces wheres in the functions of a module.

    Parameters
    ----------
    mod
        The module.
    find
        Finds the calls.
    wanted
        Called with the place and the workload of each where that may be replaced; None for all.
    target
        The machine of the kernels.
    there
        The names of the kernels that the module has, of earlier passes, with their targets.
    """

    def __init__(
        self,
        mod: tvm.IRModule,
        find: Finder,
        wanted: Wanted | None,
        target: str,
        there: Mapping[str, str],
    ) -> None:
        super().__init__(mod)
        self.mod = mod
        self.find = find
        self.wanted = wanted
        self.target = target
        self.there = there
        self.names = {str(variable.name_hint) for variable in mod.get_global_vars()}
        self.rows: list[tuple[str, str, str]] = []
        self.workloads: dict[Workload, None] = {}
        self.function, self.number = "", 0

    def replaced(self) -> tvm.IRModule:
        """The module with calls of kernels; what was done with each where is in ``rows``."""
        for variable, function in self.mod.functions_items():
            if isinstance(function, relax.Function):
                self.function = str(variable.name_hint)
                self.number = 0
                self.builder_.update_func(variable, self.visit_expr(function))
        made = self.builder_.get()
        for unused in _called(self.mod) - _called(made):
            if "global_symbol" not in (made[unused].attrs or {}):
                del made[unused]
        return made

    def visit_function_(self, function: relax.Function) -> relax.Function:
        """Leave functions that TVM gives to another compiler, or makes one loop of, as they are."""
        if any(name in function.attrs for name in _TAKEN):
            return function
        return self.visit_expr_post_order(function)

    def visit_call_(self, call: relax.Call) -> relax.Expr:
        """Replace one call, or note why it is left."""
        call = self.visit_expr_post_order(call)
        if _kernel(call) in self.there:
            self.number += 1  # replaced by an earlier pass
            return call
        place = f"{self.function}#{self.number}"
        try:
            operands = self.find(self.mod, call)
            if operands is None:
                return call
            workload = _workload(operands, call.ty)
            if (other := self.there.get(workload.name, self.target)) != self.target:
                raise LeftError(f"an earlier pass put its kernel into the module, for {other}")
            if workload.name in self.names:
                raise LeftError(f"the module has a function of its kernel's name, {workload.name}")
        except (LeftError, SelectError) as reason:
            self.note(place, "left", str(reason))
            return call
        if self.wanted is not None and not self.wanted(place, workload):
            self.note(place, "left", "it is not wanted")
            return call
        self.note(place, "replaced", workload.name)
        if workload.name not in self.there:
            self.workloads[workload] = None
        return relax.call_dps_packed(workload.name, relax.Tuple(operands), call.ty)

    def note(self, place: str, done: str, what: str) -> None:
        """Note what is done with the where at a place."""
        self.rows.append((place, done, what))
        self.number += 1


def _called(mod: tvm.IRModule) -> set[ir.GlobalVar]:
    """What the functions of a module name."""
    found: set[ir.GlobalVar] = set()
    for function in mod.functions.values():
        tvm_ffi.structural_walk(function, (ir.GlobalVar, found.add), order="pre")
    return found


def _has_kernels(target: Target) -> bool:
    kind = kinds.of_tvm(target.kind.name)
    return kind is not None and kind.in_models


def _workload(operands: list[ir.Expr], out: Any) -> Workload:
    """The workload of a where; raises `LeftError` if a kernel cannot serve it, or does not gain."""
    if all(isinstance(operand, ir.GenericConst) for operand in operands):
        raise LeftError("its operands are constants: FoldConstant computes it, in a dataflow block")
    types = [operand.ty for operand in operands]
    for name, each in zip(("cond", "then", "else", "out"), (*types, out), strict=True):
        if not isinstance(each.shape, relax.ShapeExpr):
            why = " because two names meet on an axis" if name == "out" else ""
            raise LeftError(f"the shape of {name} is not known{why}")
        if each.vdevice is not None and not _has_kernels(each.vdevice.target):
            raise LeftError(f"{name} lies on {each.vdevice.target.kind.name}")
    workload = workload_of([each.shape.values for each in types], str(out.dtype))
    if not workload.dim_names:
        elements = math.prod(bound(workload.out_shape, {}))
        if elements < SMALL:
            raise LeftError(f"out has {elements} elements; a kernel gains from {SMALL} on")
    return workload
