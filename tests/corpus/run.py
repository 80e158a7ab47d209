"""Runs corpus cases: all workloads are compiled into one library, then called."""

from typing import NamedTuple

import numpy as np

from te_select import BroadcastError, Kernel, SelectError, Workload, export, load, where
from te_select.operator.access import access_pattern
from te_select.operator.dtypes import ELEMENT_TYPES
from te_select.operator.systems import OPS, System, onnx_where
from te_select.verify.reference import first_difference, placed
from tests.corpus.cases import Run
from tests.corpus.values import literal, operands

MEMORY_LIMIT = 2 << 30  # bytes of operands of one run
_BOTH_WAYS = System("where", {"multidirectional": "multidirectional"}, "multidirectional")
_BINARY = {"float32", "float16", "bfloat16", "int32", "int8", "uint8"}
_SYSTEMS = {
    "onnx.Where-9": onnx_where(9),
    "onnx.Where-16": onnx_where(16),
    "openvino.Select-1": OPS["openvino"],
    "ngraph.legacy_Select-1": OPS["openvino"],
    "openvino.gpu_select_primitive": OPS["openvino"],
    "onednn_graph.Select": OPS["onednn"],
    "onednn.binary_select": System(
        "binary", {"numpy": "numpy"}, "numpy", dict.fromkeys(ELEMENT_TYPES.keys() - _BINARY, "type")
    ),
    "jax.lax.select": System("lax", {"numpy": "numpy"}, "numpy"),
}  # others have NumPy's rule


class Result(NamedTuple):
    """What became of a run: why it was skipped, what is wrong, and the values of out compared."""

    run: Run
    skipped: str
    wrong: str
    values: int


def workload_of(run):
    """The run's workload under its system's rule, or the error that the rule raises."""
    attrs, op = run.case["attrs"], run.case["op"]
    try:
        of = _SYSTEMS.get(op, _BOTH_WAYS)
        of = onnx_where(attrs["opset"]) if "opset" in attrs else of
        shapes = [tuple(run.instance.shapes[each]) for each in ("cond", "then", "else")]
        _check_shapes(op, *shapes)
        mode, axis = attrs.get("auto_broadcast", of.mode), attrs.get("axis", -1)
        workload = Workload.of_system(of, *shapes, run.then_dtype, mode, axis)
        if tuple(attrs.get("dst_shape", workload.out_shape)) != workload.out_shape:
            raise BroadcastError(f"dst is {attrs['dst_shape']}, expected {workload.out_shape}")
    except SelectError as error:
        return error
    return workload


def _check_shapes(op, cond, then, else_):
    """Refuse shapes that a system's rule allows, and the system does not."""
    odd_ranks = op == "onednn.binary_select" and len({len(cond), len(then), len(else_)}) > 1
    if odd_ranks or (op == "jax.lax.select" and (then != else_ or cond not in ((), then))):
        raise BroadcastError(f"{op} takes no such shapes")


def check(runs, folder):
    """Call what the runs need, and compare with NumPy and with the values of the cases."""
    made = [SelectError(run.skip) if run.skip else workload_of(run) for run in runs]
    kernels = _compiled({each for each in made if isinstance(each, Workload)}, folder)
    return [_result(*one, kernels, seed) for seed, one in enumerate(zip(runs, made, strict=True))]


def _compiled(workloads, folder):
    """The kernels by the names of their workloads."""
    if not workloads:
        return {}
    ordered = sorted(workloads, key=lambda workload: workload.name)
    loaded = load(export(ordered, folder / "corpus.so"))
    return {ordered[0].name: loaded} if isinstance(loaded, Kernel) else dict(loaded)


def _result(run, made, kernels, seed):
    if run.skip or not isinstance(made, Workload):
        return Result(run, run.skip, str(made) if run.accepts and not run.skip else "", 0)
    if run.accepts and made.out_shape != run.instance.out:
        return Result(run, "", f"out_shape is {made.out_shape}, expected {run.instance.out}", 0)
    if access_pattern(made).bytes_moved() > MEMORY_LIMIT:
        return Result(run, f"needs more than {MEMORY_LIMIT >> 30} GiB", "", 0)
    given = operands(run, made, np.random.default_rng(seed))
    try:
        out = kernels[made.name](*given)
    except SelectError as error:
        return Result(run, "", f"{type(error).__name__}: {error}" if run.accepts else "", 0)
    if not run.accepts:
        return Result(run, "", f"accepted, with out_shape {out.shape}; expected an error", 0)
    return Result(run, "", _difference(run, made, given, out), out.size)


def _difference(run, workload, given, out):
    """Compare with NumPy, and with the case's own values if it has any."""
    if out.shape != workload.out_shape or out.dtype != given[1].dtype:
        return f"out is {out.dtype} {out.shape}, expected {given[1].dtype} {workload.out_shape}"
    values = literal(run.case, "out", workload.dtype)
    views = placed(workload, *given)
    found = first_difference(out, *views) or first_difference(where(*views), *views)
    if found or values is None:
        return found
    expected = values.reshape(out.shape)
    found = first_difference(out, np.ones(out.shape, np.bool_), expected, expected)
    return found.replace("NumPy selects", "the case expects")
