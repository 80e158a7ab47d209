"""Links machine code for CPUs, the argument checks and the launcher to a shared library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from te_select.machines.c_compiler import HostHalf, link_stub
from te_select.machines.stub import exported_functions, shape_tables, signature
from te_select.operator.workload import Workload
from te_select.runtime.manifest import Manifest

CPU = HostHalf(("host.c", "cpu/host_cpu.c", "cpu/launcher.c"), ("-fopenmp",))


@dataclass(frozen=True)
class KernelEntry:
    """One compiled kernel that a library is to export.

    Parameters
    ----------
    workload
        What it computes; the exported function is called ``workload.name``.
    symbol
        The raw function in the object file:
        ``int32_t (void*, void*, void*, void*, int64_t..., int64_t stream, int64_t small)`` of cond,
        then, else_, out, the sizes of `Workload.dim_names` in that order, whether to store past the
        cache, and whether few bytes are moved.
    bytes_per_thread
        Bytes read and written from which one more thread pays; 0 for a kernel without a parallel
        loop.
    stream_from
        Bytes of output from which on the kernel is to store past the cache; 0 for never.
    """

    workload: Workload
    symbol: str
    bytes_per_thread: int = 0
    stream_from: int = 0


def stub_source(entries: Sequence[KernelEntry]) -> str:
    """Write the C code that describes and exports kernels.

    Parameters
    ----------
    entries
        The kernels of one library; each has a workload of its own.

    Returns
    -------
    str
        For every kernel a constant description, a call of the raw function, and the two exported
        functions ``<workload.name>`` (strict types) and ``<workload.name>__bits`` (any type of the
        width), in the C calling convention of tvm-ffi.
    """
    return '#include "host_cpu.h"\n' + "".join(_stub(i, entry) for i, entry in enumerate(entries))


def link(object_file: Path, entries: Sequence[KernelEntry], manifest: Manifest, out: Path) -> None:
    """Link an object file, the argument checks and the launcher to a shared library.

    Parameters
    ----------
    object_file
        Position-independent code that defines the ``symbol`` of every entry.
    entries
        The kernels to export.
    manifest
        What the library holds, which goes into it.
    out
        The library to write; it appears complete or not at all, and the same input gives the same
        bytes.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    link_stub(stub_source(entries), [object_file], CPU, manifest, out)


def _stub(i: int, entry: KernelEntry) -> str:
    names = entry.workload.dim_names
    sizes = "".join(f", sizes[{k}]" for k in range(len(names)))
    return f"""
extern int32_t {entry.symbol}(void*, void*, void*, void*{", int64_t" * (len(names) + 2)});
static int32_t run_{i}(void* const* data, const int64_t* sizes, int64_t stream, int64_t small) {{
  return {entry.symbol}(data[0], data[1], data[2], data[3]{sizes}, stream, small);
}}
{shape_tables(i, entry.workload)}
static const te_select_cpu_kernel kernel_{i} = {{
    {signature(i, entry.workload, on_cuda=False)},
    {entry.bytes_per_thread}, {entry.stream_from}, run_{i}}};
{exported_functions(i, entry.workload, "te_select_call")}
"""
