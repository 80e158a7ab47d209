"""The C stub of a library: what describes its kernels to the host half, and exports them."""

from collections.abc import Sequence

from te_select.operator.broadcast import Shape
from te_select.operator.workload import Workload


def shape_tables(i: int, workload: Workload) -> str:
    """Write the C arrays that `signature` refers to: names and shapes of the ``i``-th kernel."""
    names = workload.dim_names
    quoted = ", ".join(f'"{name}"' for name in names) or "0"
    shapes = "\n".join(
        f"static const int64_t {operand}_{i}[] = {_dims(shape, names)};"
        for operand, shape in _shapes(workload).items()
    )
    return f"static const char* const names_{i}[] = {{{quoted}}};\n{shapes}"


def signature(i: int, workload: Workload, device: str = "0") -> str:
    """Write the ``te_select_kernel`` of the ``i``-th kernel as a C initializer.

    ``device`` points to the ``te_select_device`` whose memory it takes; 0 is the CPU's.
    """
    rows = ", ".join(
        f"{{.ndim = {len(shape)}, .dims = {operand}_{i}}}"
        for operand, shape in _shapes(workload).items()
    )
    element = workload.element
    return (
        f'{{.name = "{workload.name}", .code = {element.code}, .bits = {element.bits},\n'
        f"     .num_names = {len(workload.dim_names)}, .names = names_{i},\n"
        f"     .shapes = {{{rows}}}, .device = {device}}}"
    )


def exported_functions(i: int, workload: Workload, call: str) -> str:
    """Write the exported functions of the ``i``-th kernel, which hand over to ``call``."""
    return "\n".join(
        _EXPORTED.format(symbol=workload.name + suffix, i=i, mode=mode, call=call)
        for suffix, mode in _MODES.items()
    )


def plain_function(i: int, workload: Workload, name: str, call: str, *, streams: bool) -> str:
    """Write the plain C function of the ``i``-th kernel, which hands over to ``call``, if named."""
    if not name:
        return ""
    names = range(len(workload.dim_names))
    sizes = "".join(f", int64_t size_{k}" for k in names)
    return _PLAIN.format(
        name=name,
        i=i,
        call=call,
        sizes=sizes + (", void* stream" if streams else ""),
        listed=", ".join(f"size_{k}" for k in names) or "0",
        stream=", stream" if streams else "",
    )


_PLAIN = """
/* Weak: of two archives of one program, both may hold this kernel. */
__attribute__((weak, visibility("default"))) int {name}(
    const void* cond, const void* then, const void* else_, void* out{sizes}) {{
  void* const data[] = {{(void*)cond, (void*)then, (void*)else_, out}};
  const int64_t sizes[] = {{{listed}}};
  return {call}(&kernel_{i}, data, sizes{stream});
}}
"""
_MODES = {"": "TE_SELECT_STRICT", "__bits": "TE_SELECT_BITS", "__try": "TE_SELECT_TRY"}
_EXPORTED = """\
TE_SELECT_EXPORT({symbol}) {{
  return {call}(&kernel_{i}, args, num_args, result, {mode});
}}"""


def _shapes(workload: Workload) -> dict[str, Shape]:
    shapes = (*workload.shapes, workload.out_shape)
    return dict(zip(("cond", "then", "else", "out"), shapes, strict=True))


def _dims(shape: Shape, names: Sequence[str]) -> str:
    """Write a C initializer; rank 0 still needs an element."""
    dims = [str(dim if isinstance(dim, int) else -names.index(dim) - 1) for dim in shape]
    return "{" + (", ".join(dims) or "0") + "}"
