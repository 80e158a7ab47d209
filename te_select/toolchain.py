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

from te_select.broadcast import Shape
from te_select.errors import ToolchainError
from te_select.workload import Workload

_RUNTIME = Path(__file__).parent / "runtime"
_COMPILERS = ("cc", "gcc", "clang")
_COMPILE = ("-std=gnu11", "-O2", "-fPIC", "-fopenmp", "-fvisibility=hidden")
_LINK = ("-shared", "-fopenmp", "-s", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,-z,defs")
# Whatever is exported can be found, and overwritten, by libtvm's loader; only these may be.
_EXPORTS = "{ global: __tvm_ffi_*; local: *; };\n"
_STDERR_LINES = 8


@dataclass(frozen=True)
class KernelEntry:
    """One compiled kernel that a library is to export.

    Parameters
    ----------
    workload
        What it computes; the exported function is called ``workload.name``.
    symbol
        The raw function in the object file:
        ``int32_t (void*, void*, void*, void*, int64_t..., int64_t stream)`` of cond, then, else_,
        out, the sizes of `Workload.dim_names` in that order, and whether to store past the cache.
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
    return '#include "host.h"\n' + "".join(_stub(i, entry) for i, entry in enumerate(entries))


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
    try:
        _link(object_file, entries, out.resolve())
    except OSError as error:
        raise ToolchainError(f"{out} cannot be linked: {error}") from error


def _link(object_file: Path, entries: Sequence[KernelEntry], out: Path) -> None:
    compiler = c_compiler()
    objects = _runtime_objects(compiler)
    libtvm_ffi = Path(libinfo.find_libtvm_ffi())
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
        stub = Path(folder, "stub.c")
        stub.write_text(stub_source(entries))
        exports = Path(folder, "exports.map")
        exports.write_text(_EXPORTS)
        library = Path(folder, "library.so")
        _run(
            *compiler,
            *_COMPILE,
            *_include_options(),
            *(str(path) for path in (stub, object_file.resolve(), *objects)),
            *_LINK,
            f"-Wl,--version-script={exports}",
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


def _runtime_objects(compiler: tuple[str, ...]) -> tuple[Path, ...]:
    """Objects of host.c and launcher.c, compiled once per process and compiler."""
    with _objects_lock:
        return _compile_runtime(compiler, os.getpid())


@functools.cache
def _compile_runtime(compiler: tuple[str, ...], pid: int) -> tuple[Path, ...]:
    folder = Path(tempfile.mkdtemp(prefix="te-select-"))
    atexit.register(_remove, folder, pid)
    objects = []
    for source in ("host.c", "launcher.c"):
        target = folder / f"{source}.o"
        options = (*_COMPILE, *_include_options(), "-c", str(_RUNTIME / source))
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
    workload = entry.workload
    names = workload.dim_names
    shapes = {
        "cond": workload.cond_shape,
        "then": workload.then_shape,
        "else": workload.else_shape,
        "out": workload.out_shape,
    }
    sizes = "".join(f", sizes[{k}]" for k in range(len(names)))
    extents = "\n".join(
        f"static const int64_t {operand}_{i}[] = {_dims(shape, names)};"
        for operand, shape in shapes.items()
    )
    rows = ", ".join(f"{{{len(shape)}, {operand}_{i}}}" for operand, shape in shapes.items())
    quoted = ", ".join(f'"{name}"' for name in names) or "0"
    exported = "\n".join(
        _EXPORTED.format(symbol=workload.name + suffix, i=i, as_bits=as_bits)
        for suffix, as_bits in (("", 0), ("__bits", 1))
    )
    return f"""
extern int32_t {entry.symbol}(void*, void*, void*, void*{", int64_t" * len(names)}, int64_t);
static int32_t run_{i}(void* const* data, const int64_t* sizes, int64_t stream) {{
  return {entry.symbol}(data[0], data[1], data[2], data[3]{sizes}, stream);
}}
{extents}
static const char* const names_{i}[] = {{{quoted}}};
static const te_select_kernel kernel_{i} = {{
    "{workload.name}", {workload.element.code}, {workload.element.bits},
    {len(names)}, names_{i}, {{{rows}}}, {entry.bytes_per_thread},
    {entry.stream_from}, run_{i}}};
{exported}
"""


_EXPORTED = """\
TVM_FFI_DLL_EXPORT int __tvm_ffi_{symbol}(void* self, const TVMFFIAny* args, int32_t num_args,
                                          TVMFFIAny* result) {{
  return te_select_call(&kernel_{i}, args, num_args, result, {as_bits});
}}"""


def _dims(shape: Shape, names: Sequence[str]) -> str:
    """Write a C initializer; rank 0 still needs an element."""
    dims = [str(dim) if isinstance(dim, int) else str(-names.index(dim) - 1) for dim in shape]
    return "{" + (", ".join(dims) or "0") + "}"
