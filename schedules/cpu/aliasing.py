"""Which way to walk through memory, so that pending stores do not hold up the next loads.

A core takes a load for dependent on an older store that is still pending where the low bits of
their addresses agree, and lets it wait. An output slightly ahead of an input, in those bits, has
each load hit a store just made; walking backwards, it hits none. Backwards the same befalls an
output slightly behind. Allocators place arrays of whole megabytes just so, one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from te_select.schedules.cpu.llvm_ir import IRWriter

COMPARED_BYTES = 4096  # 12 bits on many cores; Emerald Rapids was seen to compare 20
LEAST_BYTES = 8192  # rows of 252 bytes, one after another, took 1.2 times as long backwards
PENDING_BYTES = 768  # an output 512 bytes ahead took 1.1 times as long, 768 bytes 1.0


def backwards(writer: IRWriter, inputs: Sequence[str], row_bytes: int) -> str:
    """Write the choice of a direction.

    Parameters
    ----------
    writer
        Where to write; the function's arguments are pointers, ``%out`` among them.
    inputs
        Names of the pointers to what is read at the rate at which out is written.
    row_bytes
        Bytes of out per row, of which there are ``%n``.

    Returns
    -------
    str
        A value of type i1, true where backwards is better.
    """
    long = writer.emit(f"icmp uge i64 %n, {LEAST_BYTES // row_bytes}")
    look, go = writer.label(), writer.label()
    before = writer.block
    writer.branch(long, look, go)
    writer.start(look)
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
    better = writer.emit(f"and i1 {hit_forwards}, {free_backwards}")
    writer.jump(go)
    writer.start(go)
    return writer.emit(f"phi i1 [ false, %{before} ], [ {better}, %{look} ]")


def _slightly_ahead(writer: IRWriter, address: str, other: str) -> str:
    """Whether ``address`` is 1 to `PENDING_BYTES` above ``other``, in the low bits."""
    distance = writer.emit(f"sub i64 {address}, {other}")
    less_one = writer.emit(f"sub i64 {distance}, 1")
    modulo = writer.emit(f"and i64 {less_one}, {COMPARED_BYTES - 1}")
    return writer.emit(f"icmp ult i64 {modulo}, {PENDING_BYTES}")
