"""The definition of Select as a TVM tensor expression.

This is the algorithm only. Schedules decide how it is tiled, vectorized and run in parallel.

Select copies bits, so elements are carried as unsigned integers of their width. One definition
serves every element type of a width, and no NaN payload can change. A 16-byte element is a pair of
8-byte elements on a trailing axis. Extents are int64. A dim's name is one variable wherever it
appears.
"""

import tvm_ffi
from tvm import ir, te, tirx

from te_select.operator.access import LARGEST_INTEGER
from te_select.operator.broadcast import Axes, Shape
from te_select.operator.workload import Workload


def definition(workload: Workload) -> tirx.PrimFunc:
    """Define one Select in the two steps of the specifications.

    ``then_b, else_b = broadcast(then, else_)``, then
    ``out[i] = then_b[i] if cond[i] != 0 else else_b[i]`` with cond broadcast to ``out``.

    Parameters
    ----------
    workload
        Shapes, element type and rule.

    Returns
    -------
    tvm.tirx.PrimFunc
        ``main(cond, then, else_, out)``. cond is uint8, the others are unsigned integers of the
        element width. Buffers are aligned to their element and to nothing more.

    Notes
    -----
    oneDNN Graph Select, "Broadcasting rules"; OpenVINO Select-1; ONNX Where-16. The rules differ
    only in where an operand's axes land. `te_select.operator.broadcast` knows that for all of them.
    """
    variables = {name: tirx.Var(name, "int64") for name in workload.dim_names}
    lanes = workload.element.width // LARGEST_INTEGER or 1
    element = f"uint{8 * workload.element.width // lanes}"
    trailing = (lanes,) if lanes > 1 else ()
    steps = workload.broadcast

    def extents(shape: Shape) -> list[ir.Expr]:
        return [
            variables[dim] if isinstance(dim, str) else tirx.IntImm("int64", dim) for dim in shape
        ]

    def operand(name: str, shape: Shape) -> te.Tensor:
        return te.placeholder(extents((*shape, *trailing)), element, name)

    cond = te.placeholder(extents(workload.cond_shape), "uint8", "cond")
    then = operand("then", workload.then_shape)
    else_ = operand("else_", workload.else_shape)

    # Step 1: then and else broadcast to each other.
    branches = extents((*steps.branches_shape, *trailing))
    rank = len(steps.branches_shape)
    lead = len(workload.out_shape) - rank  # the two shapes are aligned right

    def broadcast_to_branches(name: str, tensor: te.Tensor, axes: Axes) -> te.Tensor:
        at = tuple(None if axis is None else axis - lead for axis in axes)
        return te.compute(branches, lambda *i: tensor[_index(i, at, rank)], name=name)

    then_b = broadcast_to_branches("then_b", then, steps.then_axes)
    else_b = broadcast_to_branches("else_b", else_, steps.else_axes)

    # Step 2: cond decides.
    to_branches = tuple(
        None if dim == 1 else axis + lead for axis, dim in enumerate(steps.branches_shape)
    )
    out_rank = len(workload.out_shape)

    def select(*i: ir.Var) -> ir.Expr:
        branch = _index(i, to_branches, out_rank)
        chosen = cond[_index(i[:out_rank], steps.cond_axes, out_rank)] != tirx.const(0, "uint8")
        return tirx.Select(chosen, then_b[branch], else_b[branch])

    out = te.compute(extents((*workload.out_shape, *trailing)), select, name="out")
    return align_to_elements(te.create_prim_func([cond, then, else_, out]))


def _index(i: tuple[ir.Var, ...], axes: Axes, rank: int) -> tuple[ir.Expr, ...]:
    """Index of an operand at ``i``: per axis the loop that it moves along, or 0; then the rest."""
    zero = tirx.IntImm("int64", 0)
    return (*(zero if axis is None else i[axis] for axis in axes), *i[rank:])


def align_to_elements(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """Declare no more alignment than the element's.

    The default of 64 bytes would let code generation emit aligned moves. Those fault on an ordinary
    array, because no call checks the alignment.
    """
    aligned = {}
    for param in func.params:
        t = param.ty
        if isinstance(t, ir.PrimType):  # a number
            continue
        size = tvm_ffi.dtype(str(t.dtype)).itemsize
        aligned[param] = tirx.decl_buffer(
            t.shape, t.dtype, param.name, data_alignment=size, layout=None
        )
    body = tvm_ffi.structural_map(
        func.body, (ir.Var, lambda var: aligned.get(var, var)), order="post"
    )
    return tirx.PrimFunc([aligned.get(p, p) for p in func.params], body, func.ret_type, func.attrs)
