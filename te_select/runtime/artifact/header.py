"""The C header of a library: its kernels as plain functions, for C11 and C++17."""

import hashlib

from te_select.operator import family
from te_select.operator.broadcast import IN_WORDS, Shape, format_shape
from te_select.runtime.artifact.manifest import KernelRecord, Manifest
from te_select.runtime.c import FOLDER

MARK = b"/* Kernels of te-select"  # how every header begins
_C_TYPES = {"float32": "float", "float64": "double", "complex64": "float", "complex128": "double"}
_CPU = "Pointers are to memory of the CPU. A call returns when out is written."
_DEVICE = """\
Pointers are to memory of one CUDA device; of an input without axes, also of the CPU. A call
 * puts the kernel on the stream (0 is the default one) and does not wait for it."""


def text(manifest: Manifest) -> bytes | None:
    """Write the header of a library.

    Parameters
    ----------
    manifest
        What the library holds.

    Returns
    -------
    bytes or None
        The C source; None if the library has no plain functions, as older ones. With the kernels
        of `te_select.where` it declares ``te_select_where_call_on``, too.
    """
    version = _in_comment(manifest.versions.get("te_select", "of an unknown version"))
    target = _in_comment(str(manifest.target["name"]))
    begin = f"{MARK.decode()} {version}, for {target}. C11 and C++17."
    held = family.held(record.workload for record in manifest.kernels)
    any_shapes = _of_any_shapes(_served(manifest, family.FUNCTION)) if held else ""
    if not manifest.c_functions:
        return f"{begin} */\n{any_shapes}".encode() if held else None
    stream = manifest.kind.c_stream
    functions = "\n".join(_function(manifest, one) for one in manifest.kernels if one.c_function)
    guard = hashlib.sha256((functions + any_shapes).encode()).hexdigest()[:16].upper()
    declared = f"{stream.removesuffix('*')};\n" if stream else ""
    return f"""\
{begin}
 *
 * Arrays are C-contiguous, and pointers aligned as their type is; a pointer to no elements
 * may be null. A size_NAME is the extent of every axis NAME. A function may be called from several
 * threads. {_DEVICE if stream else _CPU} */
#ifndef TE_SELECT_{guard}_H_
#define TE_SELECT_{guard}_H_

#include <stdint.h>

{FOLDER.joinpath("status.h").read_text()}
#ifdef __cplusplus
extern "C" {{
#endif

{declared}{functions}
#ifdef __cplusplus
}}
#endif

{any_shapes}
#endif
""".encode()


def _of_any_shapes(served: str) -> str:
    """What the host half itself includes, as one text, below the nodes that it serves."""
    order, call = (FOLDER.joinpath(name) for name in ("operand_order.h", "where/where_call.h"))
    text = order.read_text() + call.read_text().replace('#include "operand_order.h"\n', "")
    what = "/* te_select_where_call_on, below, serves operands of any shapes."
    return f"{what}{served} */\n{text}" if served else text


def _served(manifest: Manifest, symbol: str) -> str:
    """More lines for a comment, which list the nodes of the model that a function serves."""
    nodes = [node for node in manifest.nodes if node.symbol == symbol]
    listed = [f"{node.name} ({node.place})" if node.name else node.place for node in nodes]
    lines = "".join(f"\n *   {_in_comment(one)}" for one in listed)
    return f"\n * Nodes of the model:{lines}" if nodes else ""


def _in_comment(text: str) -> str:
    """A text of somebody else's for a comment: in ASCII, on one line, and not its end."""
    return ascii(text)[1:-1].replace("*/", "* /").replace("/*", "/ *")


def _function(manifest: Manifest, record: KernelRecord) -> str:
    """The declaration of one function, below what it computes, and its other names."""
    workload = record.workload
    stream = manifest.kind.c_stream
    dtype = workload.dtype
    name = record.c_function
    as_bits = f"{dtype}_t" if "int" in dtype else f"uint{workload.element.bits}_t"
    element = _C_TYPES.get(dtype, as_bits)
    sizes = "".join(f",\n    int64_t size_{dim}" for dim in workload.dim_names)
    last = f",\n    {stream} stream" if stream else ""
    defined = "".join(f"#define te_{other} {name}\n" for other in record.names)
    return f"""\
/* out = cond ? then : else_
 *   cond   {_operand("bool", workload.cond_shape)}; any nonzero byte is true
 *   then   {_operand(dtype, workload.then_shape)}
 *   else_  {_operand(dtype, workload.else_shape)}
 *   out    {_operand(dtype, workload.out_shape)}{_served(manifest, workload.name)}
 * out may be then or else_ itself, of as many elements; it overlaps no input otherwise.
 * Broadcast: {IN_WORDS[workload.auto_broadcast].format(axis=workload.axis)}. */
te_select_status {name}(
    const uint8_t* cond,
    const {element}* then,
    const {element}* else_,
    {element}* out{sizes}{last});
{defined}"""


def _operand(dtype: str, shape: Shape) -> str:
    parts = " (real and imaginary part)" if dtype.startswith("complex") else ""
    bits = " (its bits)" if "float" in dtype and dtype not in _C_TYPES else ""
    return f"{dtype}{parts}{bits} {format_shape(shape) if shape else 'scalar, one element'}"
