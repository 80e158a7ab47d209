"""Which way to walk through memory, so that pending stores do not hold up the next loads.

A core takes a load for dependent on an older store that is still pending when their addresses
agree modulo the page, and lets it wait. An output slightly ahead of an input, modulo the page, has
each load hit a store just made; walking backwards, it hits none. Backwards the same befalls an
output slightly behind. Allocators place arrays of one size just so, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from te_select.schedules.llvm_ir import IRWriter

PAGE_BYTES = 4096  # what is compared first of an address
PENDING_BYTES = 768  # an output 512 bytes ahead took 1.1 times as long, 768 bytes 1.0


def backwards(writer: IRWriter, inputs: Sequence[str]) -> str:
    """Write the choice of a direction.

    Parameters
    ----------
    writer
        Where to write; the function's arguments are pointers, ``%out`` among them.
    inputs
        Names of the pointers to what is read at the rate at which out is written.

    Returns
    -------
    str
        A value of type i1, true where backwards is better.
    """
    out = writer.emit("ptrtoint ptr %out to i64")
    ahead, behind = ["false"], ["false"]
    for name in inputs:
        address = writer.emit(f"ptrtoint ptr %{name} to i64")
        ahead.append(_slightly_ahead(writer, out, address))
        behind.append(_slightly_ahead(writer, address, out))
    hit_forwards, hit_backwards = (
        reduce(lambda a, b: writer.emit(f"or i1 {a}, {b}"), found) for found in (ahead, behind)
    )
    free_backwards = writer.emit(f"xor i1 {hit_backwards}, true")
    return writer.emit(f"and i1 {hit_forwards}, {free_backwards}")


def _slightly_ahead(writer: IRWriter, address: str, other: str) -> str:
    """Whether ``address`` is 1 to `PENDING_BYTES` above ``other``, modulo the page."""
    distance = writer.emit(f"sub i64 {address}, {other}")
    less_one = writer.emit(f"sub i64 {distance}, 1")
    modulo = writer.emit(f"and i64 {less_one}, {PAGE_BYTES - 1}")
    return writer.emit(f"icmp ult i64 {modulo}, {PENDING_BYTES}")
