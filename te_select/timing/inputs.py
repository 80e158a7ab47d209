"""Inputs for timing: aligned arrays, and masks of a density and a block length."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from te_select.operator.dtypes import numpy_dtype
from te_select.operator.workload import Workload
from te_select.verify.reference import Array, aligned, ints

LINE = 64  # bytes; torch, JAX and ONNX Runtime align to it, and JAX copies arrays that are not
APART = 1 << 20  # bytes; some CPUs compare 20 bits of addresses, others 12
PAGE = 4096  # bytes; times changed by a factor of 1.9 with the arrays' distances modulo this


@dataclass(frozen=True)
class Mask:
    """How cond is drawn.

    Parameters
    ----------
    density
        Percent of cond that is true.
    block
        Elements that are drawn together; 1 for each on its own.
    """

    density: float = 50.0
    block: int = 1

    def described(self) -> str:
        """What it is, in words."""
        return f"{self.density:g} % true, in blocks of {self.block}"

    def draw(self, rng: np.random.Generator, count: int) -> npt.NDArray[np.bool_]:
        """Draw ``count`` elements."""
        blocks = rng.random(-(-count // self.block), np.float32) < self.density / 100
        return np.repeat(blocks, min(self.block, count))[:count]


# Random, half of it true: the worst case.
USUAL = Mask()


@dataclass(frozen=True)
class Operands:
    """One set of operands; all contestants read the same inputs and may write the same output.

    Parameters
    ----------
    workload
        The workload whose shapes the operands have.
    cond, then, else_, out
        Arrays that begin on a page.
    """

    workload: Workload
    cond: Array
    then: Array
    else_: Array
    out: Array

    def arrays(self) -> tuple[Array, ...]:
        """Cond, then, else_ and out."""
        return self.cond, self.then, self.else_, self.out

    def aligned(self) -> tuple[Array, ...]:
        """Cond, then and else_ in shapes that NumPy broadcasts in the same way as the rule."""
        if self.workload.auto_broadcast != "pdpd":
            return self.cond, self.then, self.else_
        return aligned(self.workload, self.cond, self.then, self.else_)


def make_operands(workload: Workload, mask: Mask, seed: int = 0) -> Operands:
    """Allocate and fill one set of operands.

    Parameters
    ----------
    workload
        The workload, of int dims only.
    mask
        How cond is drawn.
    seed
        Seed of the random data.

    Returns
    -------
    Operands
        Finite random numbers, a cond of that mask, and an output whose pages are in memory.
    """
    rng = np.random.Generator(np.random.SFC64(seed))
    dtype = numpy_dtype(workload.dtype)
    cond = aligned_empty(ints(workload.cond_shape), np.dtype(np.bool_))
    cond.reshape(-1)[...] = mask.draw(rng, cond.size)
    then, else_, out = (
        aligned_empty(ints(shape), dtype)
        for shape in (workload.then_shape, workload.else_shape, workload.out_shape)
    )
    for side in (then, else_):
        _fill(rng, side.reshape(-1))
    out.reshape(-1).view(np.uint8)[...] = 0
    return Operands(workload, cond, then, else_, out)


def placed(operands: Operands, ahead: int) -> Operands:
    """Copy operands: each begins at a whole megabyte, out ``ahead`` bytes on.

    CPUs compare the low bits of addresses first. So at these addresses a load may be mistaken for a
    read of what was just stored.
    """
    moved = []
    for array in operands.arrays():
        own = ahead if array is operands.out else 0
        moved.append(aligned_empty(array.shape, array.dtype, APART, own))
        moved[-1][...] = array
    return Operands(operands.workload, *moved)


def aligned_empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], apart: int = PAGE, ahead: int = 0
) -> Array:
    """An uninitialized array that begins ``ahead`` bytes beyond a multiple of ``apart``.

    By default it begins on a page, so that placement favours no contestant.
    """
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + apart + ahead, np.uint8)
    start = -memory.ctypes.data % apart + ahead
    return memory[start : start + size].view(dtype).reshape(shape)


def _fill(rng: np.random.Generator, flat: Array) -> None:
    parts = flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat
    if parts.dtype.isbuiltin == 1 and parts.dtype.kind != "f":
        parts.view(np.uint8)[...] = np.frombuffer(rng.bytes(parts.nbytes), np.uint8) & 1
    else:
        parts[...] = rng.random(parts.size, np.float32).astype(parts.dtype, copy=False)
