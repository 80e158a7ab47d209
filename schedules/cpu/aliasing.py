"""Which way to walk through memory, so that pending stores do not hold up the next loads.

Many cores compare only the low bits of addresses. A load whose low bits agree with those of an
older pending store counts as dependent, and waits (4K aliasing).

- Forwards, this happens if out lies slightly ahead of an input, in the low bits: each load then
  meets a store that was just made.
- Backwards, it happens if out lies slightly behind an input.

Allocators often place arrays of whole megabytes one after another, so that out lies slightly ahead.
The constants were measured on Emerald Rapids (docs/measurements.md, "Where arrays lie").
"""

from collections.abc import Sequence
from functools import reduce

from tvm.tirx.script.builder import ir as T

from te_select.schedules.cpu.vectors import Array, Expr, let

COMPARED_BYTES = 4096  # many cores compare 12 bits of an address; Emerald Rapids compares 20
LEAST_BYTES = 8192  # of out in a call; rows of 252 bytes took 1.2x the time backwards
PENDING_BYTES = 768  # out 512 bytes ahead took 1.1x the time of backwards, 768 bytes 1.0x


def backwards(allowed: Expr, out: Array, inputs: Sequence[Array], n: Expr, row_bytes: int) -> Expr:
    """Choose a direction.

    Parameters
    ----------
    allowed
        False if the walk must go forwards.
    out
        What is written.
    inputs
        Operands that are read as fast as out is written, in bytes.
    n, row_bytes
        How many rows out has, and their bytes.

    Returns
    -------
    Expr
        Whether backwards is better.
    """
    out_address, *others = (T.reinterpret("int64", array.address()) for array in (out, *inputs))
    hit_forwards = reduce(T.Or, (_slightly_ahead(out_address, other) for other in others))
    hit_backwards = reduce(T.Or, (_slightly_ahead(other, out_address) for other in others))
    long = n >= LEAST_BYTES // row_bytes
    better = T.And(hit_forwards, T.Not(hit_backwards))
    return let("back", T.And(T.And(allowed, long), better))


def _slightly_ahead(address: Expr, other: Expr) -> Expr:
    """Whether the low bits of ``address`` are 1 to `PENDING_BYTES` above those of ``other``."""
    return ((address - other - 1) & (COMPARED_BYTES - 1)) < PENDING_BYTES
