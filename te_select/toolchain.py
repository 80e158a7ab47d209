"""The C compiler: from TVM's object file to a shared library with checked, exported functions."""

from __future__ import annotations

import atexit
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tvm_ffi import libinfo

from te_select import scratch
from te_select.broadcast import Shape
from te_select.errors import ToolchainError
from te_select.workload import Workload

_RUNTIME = Path(__file__).parent / "runtime"
_COMPILERS = ("cc", "gcc", "clang")
_COMPILE = ("-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden")
_LINK = ("-shared", "-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,-z,defs")
# Whatever is exported can be found, and overwritten, by libtvm's loader; only these may be.
_EXPORTS = "{ global: __tvm_ffi_*; local: *; };\n"
_STDERR_LINES = 8


@dataclass(frozen=True)
class HostHalf:
    """What is linked to the kernels for one kind of machine.

    Parameters
    ----------
    sources
        Files of ``runtime/``.
    options
        Of the C compiler, for compiling and for linking.
    """

    sources: tuple[str, ...]
    options: tuple[str, ...]


CPU = HostHalf(("host.c", "host_cpu.c", "launcher.c"), ("-fopenmp",))


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


def link(object_file: Path, entries: Sequence[KernelEntry], out: Path) -> None:
    """Link an object file, the argument checks and the launcher to a shared library.

    Parameters
    ----------
    object_file
        Position-independent code that defines the ``symbol`` of every entry.
    entries
        The kernels to export.
    out
        The library to write; it appears complete or not at all, and the same input gives the same
        bytes.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    link_stub(stub_source(entries), [object_file], CPU, out)


def link_stub(stub: str, objects: Sequence[Path], half: HostHalf, out: Path) -> None:
    """Link the description of kernels, objects and a host half to a shared library.

    Parameters
    ----------
    stub
        C source that defines the exported functions.
    objects
        What else it needs.
    half
        The host half.
    out
        The library to write; it appears complete or not at all, and the same input gives the same
        bytes.

    Raises
    ------
    ToolchainError
        If there is no C compiler, or it fails.
    """
    try:
        _link(stub, objects, half, out.resolve())
    except OSError as error:
        raise ToolchainError(f"{out} cannot be linked: {error}") from error


def _link(stub: str, objects: Sequence[Path], half: HostHalf, out: Path) -> None:
    compiler = c_compiler()
    linked = [path.resolve() for path in objects] + [*_runtime_objects(compiler, half)]
    libtvm_ffi = Path(libinfo.find_libtvm_ffi())
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
        source = Path(folder, "stub.c")
        source.write_text(stub)
        exports = Path(folder, "exports.map")
        exports.write_text(_EXPORTS)
        library = Path(folder, "library.so")
        _run(
            *compiler,
            *_COMPILE,
            *half.options,
            *_include_options(),
            *(str(path) for path in (source, *linked)),
            *_LINK,
            "-Xlinker",  # unlike -Wl, it does not end at a comma in the path
            f"--version-script={exports}",
            f"-L{libtvm_ffi.parent}",
            "-ltvm_ffi",
            output=library,
        )
        library.replace(out)


def c_compiler() -> tuple[str, ...]:
    """Find the C compiler: ``$CC``, else cc, gcc or clang.

    Returns
    -------
    tuple[str, ...]
        The command, with the options that ``$CC`` may hold.

    Raises
    ------
    ToolchainError
        If there is none.
    """
    wanted = os.environ.get("CC", "").strip()
    if wanted:
        try:
            command = tuple(shlex.split(wanted))
        except ValueError:
            command = ()
        if not command or shutil.which(command[0]) is None:
            raise ToolchainError(f"CC is {wanted!r}, not a program; set it to a C compiler")
        return command
    for name in _COMPILERS:
        if shutil.which(name) is not None:
            return (name,)
    raise ToolchainError(
        f"no C compiler is found ({', '.join(_COMPILERS)}); install one (Debian: apt install gcc) "
        "or set CC"
    )


_objects_lock = threading.Lock()


def _runtime_objects(compiler: tuple[str, ...], half: HostHalf) -> tuple[Path, ...]:
    """Objects of a host half, compiled once per process and compiler."""
    with _objects_lock:
        return _compile_runtime(compiler, half, os.getpid())


@functools.cache
def _compile_runtime(compiler: tuple[str, ...], half: HostHalf, pid: int) -> tuple[Path, ...]:
    folder = scratch.make()
    atexit.register(_remove, folder, pid)
    objects = []
    for source in half.sources:
        target = folder / f"{source}.o"
        options = (*_COMPILE, *half.options, *_include_options(), "-c", str(_RUNTIME / source))
        _run(*compiler, *options, output=target)
        objects.append(target)
    return tuple(objects)


def _remove(folder: Path, pid: int) -> None:
    """Delete what this process made; a forked child must leave its parent's files alone."""
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _include_options() -> tuple[str, ...]:
    return tuple(f"-I{path}" for path in (_RUNTIME, *libinfo.include_paths()))


def _run(*command: str, output: Path) -> None:
    try:
        done = subprocess.run((*command, "-o", str(output)), capture_output=True, check=False)
    except OSError as error:
        raise ToolchainError(f"{command[0]} cannot be run: {error}") from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()[-_STDERR_LINES:]
        raise ToolchainError(
            f"{command[0]} failed with exit code {done.returncode}; a C compiler with OpenMP is "
            "needed: " + "; ".join(line.strip() for line in lines)
        )
    if not output.is_file():
        raise ToolchainError(f"{command[0]} wrote no file; set CC to a C compiler")


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


def shape_tables(i: int, workload: Workload) -> str:
    """Write the C arrays that `signature` refers to: names and shapes of the ``i``-th kernel."""
    names = workload.dim_names
    quoted = ", ".join(f'"{name}"' for name in names) or "0"
    shapes = "\n".join(
        f"static const int64_t {operand}_{i}[] = {_dims(shape, names)};"
        for operand, shape in _shapes(workload).items()
    )
    return f"static const char* const names_{i}[] = {{{quoted}}};\n{shapes}"


def signature(i: int, workload: Workload, *, on_cuda: bool) -> str:
    """Write the ``te_select_kernel`` of the ``i``-th kernel as a C initializer."""
    rows = ", ".join(
        f"{{{len(shape)}, {operand}_{i}}}" for operand, shape in _shapes(workload).items()
    )
    element = workload.element
    return (
        f'{{"{workload.name}", {element.code}, {element.bits}, {len(workload.dim_names)}, '
        f"names_{i}, {{{rows}}}, {int(on_cuda)}}}"
    )


def exported_functions(i: int, workload: Workload, call: str) -> str:
    """Write the two exported functions of the ``i``-th kernel, which hand over to ``call``."""
    return "\n".join(
        _EXPORTED.format(symbol=workload.name + suffix, i=i, as_bits=as_bits, call=call)
        for suffix, as_bits in (("", 0), ("__bits", 1))
    )


_EXPORTED = """\
TVM_FFI_DLL_EXPORT int __tvm_ffi_{symbol}(void* self, const TVMFFIAny* args, int32_t num_args,
                                          TVMFFIAny* result) {{
  return {call}(&kernel_{i}, args, num_args, result, {as_bits});
}}"""


def _shapes(workload: Workload) -> dict[str, Shape]:
    return {
        "cond": workload.cond_shape,
        "then": workload.then_shape,
        "else": workload.else_shape,
        "out": workload.out_shape,
    }


def _dims(shape: Shape, names: Sequence[str]) -> str:
    """Write a C initializer; rank 0 still needs an element."""
    dims = [str(dim) if isinstance(dim, int) else str(-names.index(dim) - 1) for dim in shape]
    return "{" + (", ".join(dims) or "0") + "}"
