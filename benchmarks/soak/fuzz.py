"""Random workloads, configs, targets and places of operands, against NumPy, bit for bit.

Every operand lies between protected pages and may begin at any byte. The inputs cannot be written
while a kernel runs. Before a call, every bit of the output is the opposite of the expected bit. The
bytes around the output must not change.
"""

import dataclasses
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tvm_ffi

import te_select
from soak import draws
from soak.found import Found
from soak.guarded import Guarded
from te_select import Workload
from te_select.compiler import build, scheduling
from te_select.operator.dtypes import numpy_dtype
from te_select.verify.guarded import Bytes
from te_select.verify.reference import bits, first_difference, ints, placed

_THREADS = (1, 2, 3, 7)
_PLACES = 20  # calls on the same data
_CALLS_OF_LARGE = 6
_ALIGNMENTS = (1, 1, 0, 0, 64)  # bytes; 0 stands for the alignment of the element type
_INPUTS = ("cond", "then", "else_")
Array = np.ndarray[Any, Any]


class SelectKernel(Protocol):
    """The part of a kernel that `check` needs."""

    workload: Workload
    function: Callable[..., Any]

    def __call__(self, cond: Any, then: Any, else_: Any, /, *, out: Any = None) -> Any:
        """Select."""


def attack(seed: int, found: Found, kernels: int = 25, calls: int = 600) -> None:
    """Compile a library of random workloads, and call each of its kernels."""
    rng = np.random.default_rng(seed)
    targets = draws.targets()
    target = targets[int(rng.integers(len(targets)))]
    drawn = [draws.workload(rng) for _ in range(kernels - 1)] + [draws.large(rng)]
    configs = {each: draws.config(rng, each, target) for each in drawn}
    os.environ["TE_SELECT_NUM_THREADS"] = threads = str(rng.choice(_THREADS))
    os.environ["TE_SELECT_PROFILE"] = profile = draws.profile(rng)
    found.doing(f"compiling {len(configs)} workloads for {target.name}")
    chosen = [scheduling.schedule(each, target, config=c) for each, c in configs.items()]
    folder = Path(tempfile.mkdtemp())
    try:
        build.build_scheduled(chosen, folder / "fuzz.so", target)
        loaded = te_select.load(folder / "fuzz.so")
    finally:
        shutil.rmtree(folder)
    found.tried("kernels compiled", len(configs))
    library = {loaded.workload.name: loaded} if isinstance(loaded, te_select.Kernel) else loaded
    for workload, config in configs.items():
        few = workload is drawn[-1]
        label = f"{workload}, target {target.name}, {config}, {threads} threads, {profile}"
        check(library[workload.name], label, rng, found, _CALLS_OF_LARGE if few else calls)


def check(
    kernel: SelectKernel, label: str, rng: np.random.Generator, found: Found, calls: int
) -> None:
    """Call a kernel on random data in random places, and compare.

    Parameters
    ----------
    kernel
        The kernel.
    label
        What it is, for messages.
    rng
        Source of all data.
    found
        Counts every call and takes failures.
    calls
        How many calls.
    """
    for first in range(0, calls, _PLACES):
        workload = kernel.workload
        data = _Data(workload.bind(draws.sizes(rng, workload)), rng)
        for number in range(first, min(first + _PLACES, calls)):
            call = data.draw_call(rng)
            found.doing(f"call {number} {call} of {label}")
            found.tried(f"calls {call.way}")
            if problem := data.run(kernel, call):
                found.failed(f"{label}: call {number} {call}: {problem}")
                return  # one failure for a kernel is enough


@dataclasses.dataclass(frozen=True)
class _Call:
    """How a kernel is called: which way, where operands begin, and how they are laid out."""

    way: str
    starts: tuple[int, int, int, int]
    layouts: tuple[int, int, int, int]
    shared: str
    shift: int

    def __str__(self) -> str:
        where = ", ".join(map(str, self.starts))
        apart = f", out {self.shift} elements from {self.shared}" if self.shared else ""
        return f"{self.way}, operands at bytes {where}, layouts {self.layouts}{apart}"


class _Data:
    """The operands of one workload, NumPy's result, and memory in which to place them."""

    def __init__(self, workload: Workload, rng: np.random.Generator) -> None:
        self.workload = workload
        self.dtype = numpy_dtype(workload.dtype)
        self.shapes = tuple(
            map(ints, (workload.cond_shape, workload.then_shape, workload.else_shape))
        )
        self.out_shape = ints(workload.out_shape)
        cond = draws.mask(rng, math.prod(self.shapes[0])).view(np.bool_).reshape(self.shapes[0])
        self.inputs = (cond, *(self._random(rng, shape) for shape in self.shapes[1:]))
        views = placed(workload, *self.inputs)
        truth = views[0].view(np.uint8) != 0
        then, else_ = map(bits, map(np.ascontiguousarray, views[1:]))
        selected = np.where(truth[..., None] if then.ndim > truth.ndim else truth, then, else_)
        self.expected: Bytes = np.frombuffer(np.ascontiguousarray(selected).tobytes(), np.uint8)
        self.memory = [Guarded(each.nbytes, rng) for each in self.inputs]
        self.memory.append(Guarded(self.expected.size, rng))

    def draw_call(self, rng: np.random.Generator) -> _Call:
        """Choose how to call."""
        width = self.dtype.itemsize
        shared, shift = "", 0
        whole = math.prod(self.out_shape)
        partners = [
            name
            for name, each in zip(_INPUTS, self.inputs, strict=True)
            if each.size == whole and (name != "cond" or width == 1)
        ]
        if partners and whole and draws.chance(rng, 0.25):
            shared = str(rng.choice(partners))
            shift = int(rng.integers(-9, 10)) if draws.chance(rng, 0.4) else 0
        ways = ["into out", "into out", "with a new out"]
        if self.dtype.isbuiltin == 1 and self.dtype.kind != "c" and not shift:
            ways.append("of the exported function")
        way = "into out" if shared else str(rng.choice(ways))
        exported = way == "of the exported function"
        starts = []
        for memory, size, element in zip(
            self.memory,
            (*(each.nbytes for each in self.inputs), self.expected.size),
            (1, width, width, width),
            strict=True,
        ):
            align = element if exported else int(rng.choice(_ALIGNMENTS)) or element
            starts.append(memory.start(rng, size, align))
        cond, then, else_, out = (
            0 if exported or shared or draws.chance(rng, 0.85) else int(rng.integers(1, 4))
            for _ in range(4)
        )
        layouts = (cond, then, else_, out)
        return _Call(way, (starts[0], starts[1], starts[2], starts[3]), layouts, shared, shift)

    def run(self, kernel: SelectKernel, call: _Call) -> str:
        """Call a kernel; returns what is wrong, or an empty string."""
        *frozen, target = self.memory
        size = self.expected.size
        start = call.starts[-1]
        out = _laid_out(
            target.memory[start : start + size], self.out_shape, self.dtype, call.layouts[-1]
        )
        out[...] = (~self.expected).view(self.dtype).reshape(self.out_shape)
        inputs = []
        for i, (name, values) in enumerate(zip(_INPUTS, self.inputs, strict=True)):
            place = call.starts[i]
            memory = self.memory[i].memory
            if name == call.shared:
                place = self._beside(start, values, call.shift)
                memory = target.memory
            region = memory[place : place + values.nbytes]
            array = _laid_out(region, values.shape, values.dtype, call.layouts[i])
            array[...] = values
            inputs.append(array)
        target.remember()
        for memory_of_input in frozen:
            memory_of_input.freeze()
        try:
            got = self._called(kernel, call.way, inputs, out)
        except Exception as error:  # any error is a failure
            return f"{type(error).__name__}: {error}"
        finally:
            for memory_of_input in frozen:
                memory_of_input.thaw()
        stray = target.stray(start, size if got is out else 0)
        if stray is not None:
            return f"byte {stray} of out was written, which has {size} of its own"
        if got.shape != self.out_shape:
            return f"out has shape {got.shape}; expected {self.out_shape}"
        if np.array_equal(np.ascontiguousarray(got).reshape(-1).view(np.uint8), self.expected):
            return ""
        return first_difference(got, *placed(self.workload, *self.inputs))

    @staticmethod
    def _called(kernel: SelectKernel, way: str, inputs: list[Array], out: Array) -> Array:
        if way == "with a new out":
            new: Array = kernel(*inputs)
            return new
        if way == "of the exported function":
            kernel.function(*map(tvm_ffi.from_dlpack, (*inputs, out)))
            return out
        kernel(*inputs, out=out)
        return out

    def _beside(self, start: int, values: Array, shift: int) -> int:
        """Where an input begins that lies ``shift`` elements from out, as far as there is room."""
        room = self.memory[-1].memory.size - values.nbytes
        return int(min(max(start + shift * values.dtype.itemsize, 0), room))

    def _random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        size = math.prod(shape) * self.dtype.itemsize
        values = rng.integers(0, 256, size, np.uint8)
        if self.dtype == np.bool_:
            values &= 1
        return values.view(self.dtype).reshape(shape)


def _laid_out(region: Bytes, shape: tuple[int, ...], dtype: np.dtype[Any], layout: int) -> Array:
    """Memory as an array: compact (0), backwards (1), transposed (2) or both (3)."""
    axes = slice(None, None, -1 if layout >= 2 else 1)  # noqa: PLR2004 - see above
    array: Array = region.view(dtype).reshape(shape[axes])
    array = array.transpose(tuple(range(len(shape)))[axes])
    return array[::-1] if layout % 2 and shape else array
