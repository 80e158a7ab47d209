"""Writes a loop nest in C, and links it; see `te_select.backends`."""

import sys
from pathlib import Path

from te_select.backends.c_compiler import CHECKS, HostHalf, link_stub
from te_select.backends.scheduled import symbol
from te_select.backends.select_leaf import block_of, steps_of
from te_select.backends.stub import exported_functions, shape_tables, signature
from te_select.operator.access import STAYS, access_pattern
from te_select.schedules.leaf import leaves

RUNTIME = Path(__file__).parents[1] / "runtime"
TOY = HostHalf((*CHECKS, str(RUNTIME / "host_toy.c")), ())


def write_library(chosen, _target, manifest, path):
    stubs = (_stub(i, one) for i, one in enumerate(chosen))
    link_stub('#include "host_toy.h"\n' + "".join(stubs), [], TOY, manifest, path)


def requirements(target):
    return {"kind": target.kind, "byte_orders": [sys.byteorder]}


def missing(_target):
    return []


def versions():
    return {"toy": "1"}


def components():
    return ()


def source(one, _target, _level):
    return _loops(one, symbol(0))


def device():
    return "a toy"


def tuned_on(_target):
    return device(), 1


def _stub(i, one):
    return f"""{_loops(one, symbol(i))}
{shape_tables(i, one.workload)}
static const te_select_toy_kernel kernel_{i} = {{
    {signature(i, one.workload)}, {symbol(i)}}};
{exported_functions(i, one.workload, "te_select_call_toy")}
"""


def _loops(one, name):
    """The loops of the access pattern around an assignment, at the definition's own offsets."""
    pattern = access_pattern(one.workload)
    sizes = {dim: f"sizes[{k}]" for k, dim in enumerate(one.workload.dim_names)}
    lines = [f"static void {name}(void* const* data, const int64_t* sizes) {{"]
    if pattern.elements != 0:
        (leaf,) = leaves(one.func.body)
        steps = steps_of(block_of(leaf), pattern)
        at = {operand: _offset(along, sizes) for operand, along in steps.items()}
        for k, loop in enumerate(pattern.loops):
            if k == len(pattern.loops) - 1:
                lines.append(f"#pragma GCC unroll {one.config.unroll}")
            extent = _product(loop.dims, sizes)
            lines.append(f"for (int64_t i{k} = 0; i{k} < {extent}; ++i{k})")
        element = f"uint{8 * pattern.width}_t"
        lines.append(
            f"(({element}*)data[3])[{at['out']}] = ((const uint8_t*)data[0])[{at['cond']}] != 0 "
            f"? ((const {element}*)data[1])[{at['then']}] "
            f": ((const {element}*)data[2])[{at['else']}];"
        )
    return "\n".join([*lines, "(void)data; (void)sizes;", "}"])


def _offset(steps, sizes):
    terms = [f"i{k} * {_product(s, sizes)}" for k, s in enumerate(steps) if s != STAYS]
    return " + ".join(terms) or "0"


def _product(dims, sizes):
    return " * ".join(sizes[d] if isinstance(d, str) else f"INT64_C({d})" for d in dims) or "1"
