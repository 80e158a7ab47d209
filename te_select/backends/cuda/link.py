"""Links machine code for CUDA devices, and the host half that launches it, to a shared library."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from te_select.backends.c_compiler import CHECKS, HostHalf, link_stub
from te_select.backends.cuda.compilers import CudaBinary, number
from te_select.backends.cuda.lowering import CudaFunction
from te_select.backends.stub import exported_functions, plain_function, shape_tables, signature
from te_select.base import scratch
from te_select.operator.workload import Workload
from te_select.runtime.artifact.manifest import Manifest

CUDA = HostHalf((*CHECKS, "cuda/host_cuda.c"), ("-pthread", "-ldl"))
_ALIGNMENT = 64  # bytes; the driver reads the header of a cubin in place
_MAX_DEVICES = "TE_SELECT_MAX_DEVICES"


def stub_source(
    functions: Mapping[Workload, CudaFunction],
    archs: Sequence[str],
    folder: Path,
    c_functions: Mapping[Workload, str] = {},
) -> str:
    """Write the C code that embeds machine code and describes and exports kernels.

    Parameters
    ----------
    functions
        The kernels of one library; the exported function has the name of the workload.
    archs
        The architectures, oldest first, such as ``"sm_90"``. The PTX is of the last.
    folder
        The folder with ``<arch>.cubin`` and ``newest.ptx``.
    c_functions
        The names of the plain C functions, for the kernels that have one.

    Returns
    -------
    str
        For every kernel a description and the three exported functions ``<workload.name>`` (strict
        types), ``<workload.name>__bits`` (any type of the width) and ``<workload.name>__try``
        (refuses without an error); then its plain C function.
    """
    blobs = [_embedded(f"cubin_{arch}", folder / f"{arch}.cubin") for arch in archs]
    blobs.append(_embedded("newest_ptx", folder / "newest.ptx"))
    images = ", ".join(f"{{.arch = {number(arch)}, .cubin = cubin_{arch}}}" for arch in archs)
    library = f"""
static void *contexts[{_MAX_DEVICES}], *modules[{_MAX_DEVICES}];
static const te_select_image images[] = {{{images}}};
static te_select_cuda_library library = {{
    .archs = "{", ".join(archs)}", .num_images = {len(archs)}, .images = images,
    .ptx_arch = {number(archs[-1])}, .ptx = newest_ptx,
    .contexts = contexts, .modules = modules}};
"""
    kernels = (
        _stub(i, workload, function, c_functions.get(workload, ""))
        for i, (workload, function) in enumerate(functions.items())
    )
    return '#include "host_cuda.h"\n' + "".join(blobs) + library + "".join(kernels)


def link(
    binary: CudaBinary,
    functions: Mapping[Workload, CudaFunction],
    manifest: Manifest,
    out: Path,
    static: Path | None = None,
) -> None:
    """Link machine code, PTX, the argument checks and the launch to a shared library.

    Parameters
    ----------
    binary
        Machine code that defines the ``symbol`` of every function, for each architecture.
    functions
        The kernels to export.
    manifest
        What the library holds, which goes into it.
    out
        The library to write. It appears complete or not at all. The same input gives the same
        bytes.
    static
        The ``.a`` or ``.o`` to write with the same code, or None.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    archs = sorted(binary.cubins, key=number)
    with scratch.folder() as folder:
        for arch, cubin in binary.cubins.items():
            (folder / f"{arch}.cubin").write_bytes(cubin)
        (folder / "newest.ptx").write_text(binary.ptx)
        source = stub_source(functions, archs, folder, manifest.c_functions)
        link_stub(source, [], CUDA, manifest, out, static=static)


def _embedded(symbol: str, path: Path) -> str:
    """Write C for an array ``symbol`` with a file's bytes and a 0 after them."""
    return f"""
extern const char {symbol}[] __attribute__((visibility("hidden")));
__asm__(
    ".section .rodata\\n.balign {_ALIGNMENT}\\n.globl {symbol}\\n.hidden {symbol}\\n{symbol}:\\n"
    ".incbin \\"{path}\\"\\n.byte 0\\n.previous\\n");
"""


def _stub(i: int, workload: Workload, function: CudaFunction, c_function: str) -> str:
    call = "te_select_call_plain_cuda"
    plain = plain_function(i, workload, c_function, call, streams=True)
    return f"""
static int64_t blocks_{i}(const int64_t* sizes) {{
  (void)sizes;
  return {function.blocks};
}}
static void* functions_{i}[{_MAX_DEVICES}];
{shape_tables(i, workload)}
static const te_select_cuda_kernel kernel_{i} = {{
    .common = {signature(i, workload, "&te_select_cuda")},
    .library = &library, .symbol = "{function.symbol}", .threads = {function.threads},
    .blocks = blocks_{i}, .functions = functions_{i}}};
{exported_functions(i, workload, "te_select_call_cuda")}
{plain}"""
