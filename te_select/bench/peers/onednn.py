"""oneDNN's select, called through its C interface."""

from __future__ import annotations

import ctypes
import functools
import math
import os
import weakref
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from te_select.bench.peers.base import Call, Peer, UnsupportedError, first_line
from te_select.operator.access import AccessPattern
from te_select.operator.workload import Workload
from te_select.timing.operands import Operands

# Numbers from oneDNN's C headers.
_ENGINE_KIND_CPU = 1
_STREAM_IN_ORDER = 1
_ALG_BINARY_SELECT = 0x1FFFC
_QUERY_IMPLEMENTATION = 8
_MAX_DIMS = 12
_F16, _BF16, _F32, _S8, _U8 = 1, 2, 3, 5, 6
_ARGUMENTS = (3, 1, 2, 17)  # of cond, then, else and out

TYPES = {
    "bool": _U8,
    "uint8": _U8,
    "int8": _S8,
    "float16": _F16,
    "bfloat16": _BF16,
    # oneDNN keeps the bits of float32. It converts integers of 4 bytes to floats on the way.
    "float32": _F32,
    "int32": _F32,
    "uint32": _F32,
}

# In elements. The reference implementation took 25 to 80 ns for each: seconds for most rows.
_MOST_BY_REFERENCE = 1 << 16


class OneDnn(Peer):
    """oneDNN's ``binary_select`` over the merged loops, on memory that is bound beforehand.

    It runs on a SYCL queue of the CPU with all cores, as the PyPI package is built to.
    """

    name = "onednn"
    install = "onednn"

    def available(self) -> str | None:
        """Why this peer cannot run here, or None if it can."""
        try:
            _machine()
        except Exception as error:  # a package that is broken may raise anything
            return f"{first_line(error)}; pip install {self.install}"
        return None

    def prepare(self, workload: Workload, sets: Sequence[Operands]) -> list[Call]:
        """Make the primitive, and memory for each set."""
        machine = _machine()
        pattern, _ = sets[0].merged()
        kind = TYPES.get(workload.dtype)
        if kind is None:
            raise UnsupportedError(f"has no select that keeps the bits of {workload.dtype}")
        if len(pattern.loops) > _MAX_DIMS:
            raise UnsupportedError(f"has {_MAX_DIMS} dims at most, not {len(pattern.loops)}")
        select = _Select(machine, pattern, kind)
        return [select.bind(operands) for operands in sets]


class _Handle(ctypes.c_void_p):
    """A pointer of the library; it is released when nothing refers to it any more."""


class _Machine:
    """The library, an engine of it for the CPU, and a stream."""

    def __init__(self) -> None:
        files = metadata.distribution("onednn").files or []
        paths = [Path(str(file.locate())).resolve() for file in files if file.match("libdnnl.so.*")]
        if not paths:
            raise OSError("the package onednn has no libdnnl.so for this system")
        folder = paths[0].parent
        if other := _other_tbb(folder):
            raise OSError(f"oneDNN finds no CPU beside another TBB, and {other} is loaded")
        # pip moves the CPU's driver away from the place where it is registered.
        os.environ.setdefault("OCL_ICD_FILENAMES", str(folder / "libintelocl.so"))
        # The library would print to stdout what its statuses say too.
        os.environ.setdefault("ONEDNN_VERBOSE", "none")
        self.library = _load(paths[0])
        self.library.dnnl_status2str.restype = ctypes.c_char_p
        self.engine = self.make("engine", _ENGINE_KIND_CPU, ctypes.c_size_t(0))
        self.stream = self.make("stream", self.engine, _STREAM_IN_ORDER)

    def check(self, function: str, *arguments: Any) -> None:
        """Call a function, and raise an error if its status is one."""
        status = getattr(self.library, f"dnnl_{function}")(*arguments)
        if status:
            text = self.library.dnnl_status2str(status).decode()
            raise UnsupportedError(f"dnnl_{function} says {text}")

    def make(self, kind: str, *arguments: Any, by: str = "") -> _Handle:
        """Make an object of the library; it lives as long as the handle that this returns."""
        handle = _Handle()
        self.check(by or f"{kind}_create", ctypes.byref(handle), *arguments)
        destroy: Callable[[Any], int] = getattr(self.library, f"dnnl_{kind}_destroy")
        # At exit, the queue and its threads may have gone before.
        weakref.finalize(handle, destroy, ctypes.c_void_p(handle.value)).atexit = False
        return handle


@functools.cache
def _machine() -> _Machine:
    return _Machine()


def _load(path: Path) -> ctypes.CDLL:
    """Load a library, after those that it needs from its folder, where the loader does not look."""
    loaded = ""
    while True:
        try:
            return ctypes.CDLL(str(path))
        except OSError as error:
            needed = str(error).partition(":")[0]
            if needed in (loaded, path.name) or not (path.parent / needed).is_file():
                raise
            _load(path.parent / needed)
            loaded = needed


def _other_tbb(folder: Path) -> str:
    """A TBB that the process loaded from elsewhere; oneDNN would use it in place of its own."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split(maxsplit=5)[-1]
        if "/libtbb.so" in path and Path(path).parent != folder:
            return path
    return ""


class _Argument(ctypes.Structure):
    """One argument of a primitive."""

    _fields_ = (("index", ctypes.c_int), ("memory", ctypes.c_void_p))


class _Select:
    """The primitive for merged loops."""

    def __init__(self, machine: _Machine, pattern: AccessPattern, kind: int) -> None:
        self.machine = machine
        kinds = (_S8, kind, kind, kind)
        self.descriptors = [
            self._descriptor(pattern, letter, each)
            for letter, each in zip("cteo", kinds, strict=True)
        ]
        cond, then, else_, out = self.descriptors
        description = machine.make(
            "primitive_desc",
            machine.engine,
            _ALG_BINARY_SELECT,
            then,
            else_,
            cond,
            out,
            None,
            by="binary_primitive_desc_create_v2",
        )
        name = ctypes.c_char_p()
        arguments = (description, _QUERY_IMPLEMENTATION, 0, ctypes.byref(name))
        machine.check("primitive_desc_query", *arguments)
        elements = math.prod(loop.bound({}) for loop in pattern.loops)
        if (name.value or b"").startswith(b"ref") and elements > _MOST_BY_REFERENCE:
            raise UnsupportedError("has only its reference implementation, element by element")
        self.primitive = machine.make("primitive", description)

    def _descriptor(self, pattern: AccessPattern, letter: str, kind: int) -> _Handle:
        moving = [letter in loop.movers + "o" for loop in pattern.loops] or [False]
        extents = [loop.bound({}) for loop in pattern.loops] or [1]
        dims = [extent if moves else 1 for extent, moves in zip(extents, moving, strict=True)]
        strides = [math.prod(dims[k + 1 :]) for k in range(len(dims))]
        array = ctypes.c_int64 * _MAX_DIMS
        return self.machine.make(
            "memory_desc",
            len(dims),
            array(*dims),
            kind,
            array(*strides),
            by="memory_desc_create_with_strides",
        )

    def bind(self, operands: Operands) -> Call:
        """A call on the operands' own memory."""
        machine, primitive = self.machine, self.primitive
        _, arrays = operands.merged()
        memories = [
            machine.make("memory", descriptor, machine.engine, ctypes.c_void_p(array.ctypes.data))
            for descriptor, array in zip(self.descriptors, arrays, strict=True)
        ]
        arguments = (_Argument * len(memories))(
            *(_Argument(*each) for each in zip(_ARGUMENTS, memories, strict=True))
        )
        kept = (arrays, memories)

        def call() -> Any:
            machine.check("primitive_execute", primitive, machine.stream, len(arguments), arguments)
            machine.check("stream_wait", machine.stream)
            return kept  # the arguments' memory must live as long as the call

        return call
