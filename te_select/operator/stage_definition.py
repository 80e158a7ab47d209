"""The definition of stages as TVM tensor expressions: one element of what is made of one item."""

import functools
import itertools
from typing import Any

import numpy as np
from tvm import ir, te, tirx

from te_select.operator.definition import align_to_elements
from te_select.operator.stages import BITS, QUIET, Stage


def definition(stage: Stage) -> tirx.PrimFunc:
    """Define a stage as a TVM tensor expression.

    Parameters
    ----------
    stage
        The stage.

    Returns
    -------
    tvm.tirx.PrimFunc
        ``main(source, made, flags)``. The elements are those of the types, complex ones have a
        trailing axis of two; a boolean is a byte. Of booleans that are stored as bits, an element
        is 64 of them: n + 1 words become n vectors, from the bit ``flags`` of the first word on.
        Buffers are aligned to their element and to nothing more.
    """
    n = tirx.Var("n", "int64")
    flags = tirx.Var("flags", "int64")
    parts_in, parts_out = (_parts(name) for name in (stage.source, stage.target))
    extent: ir.Expr = n + 1 if stage.source == BITS else n
    source = te.placeholder((extent, *parts_in), _carrier(stage.source), "source")

    def made(i: Any, *part: Any) -> Any:
        if stage.source == BITS:
            return _booleans(source[i].asobject(), source[i + 1].asobject(), flags)
        if stage.target == "bool":
            places = [(i, *at) for at in itertools.product(*map(range, parts_in))]
            found = [_truth(source[place].asobject(), stage.source) for place in places]
            return functools.reduce(tirx.bitwise_or, found)
        index = (i, *part) if parts_in else (i,)
        value = _number(source[index].asobject(), stage, flags)
        if part and not parts_in:
            return tirx.Select(part[0] == 0, value, tirx.const(0, value.ty.dtype))
        return value

    out = te.compute((n, *parts_out), made, name="made")
    return align_to_elements(te.create_prim_func([source, out, flags]))


def _booleans(word: Any, next_word: Any, first: Any) -> Any:
    """The 64 bits of two words from a place on, as bytes.

    In each of eight lanes, eight copies of a byte keep one bit each. A loop over bytes, which LLVM
    vectorizes, took 3 to 4 times as long at every level of x86-64 (Zen 5).
    """
    place = first.astype("uint64")
    behind = (next_word << 1) << (63 - place)  # no shift is by 64 bits
    bits = (word >> place) | behind
    copies = tirx.Shuffle([_as_bytes(bits)], [tirx.IntImm("int32", k // 8) for k in range(64)])
    own = copies & _as_bytes(tirx.const(0x8040201008040201, "uint64"))
    zeros, ones = (tirx.Broadcast(tirx.const(each, "uint8"), 64) for each in (0, 1))
    return tirx.Select(own != zeros, ones, zeros)


def _as_bytes(word: Any) -> Any:
    """The bytes of a word, eight times."""
    return tirx.reinterpret("uint8x64", tirx.Broadcast(word, 8))


def _parts(name: str) -> tuple[int, ...]:
    """The trailing axis of a type."""
    return (2,) if name.startswith("complex") else ()


def _carrier(name: str) -> str:
    """The type in which elements are read and written, of one part of a complex one."""
    own = {BITS: "uint64", "bool": "uint8", "float16": "uint16"}
    return {**own, "complex64": "float32", "complex128": "float64"}.get(name, name)


def _truth(value: Any, source: str) -> Any:
    """Whether an element is not zero, as a byte; a NaN is not zero."""
    if source == "float16":
        value = value & 0x7FFF
    zero = tirx.const(0, value.ty.dtype)
    return tirx.Select(value == zero, tirx.const(0, "uint8"), tirx.const(1, "uint8"))


def _number(value: Any, stage: Stage, flags: Any) -> Any:
    """An element as a number of another type."""
    target = _carrier(stage.target)
    if stage.source == "bool":
        value = _truth(value, stage.source)
    if stage.target == "float16":
        return _to_half(value)
    if stage.source == "float16":
        return _of_half(value, target, flags)
    return value.astype(target)


def _to_half(value: Any) -> Any:
    """A whole number of at most eight bits as the bits of a float16, which holds it exactly."""
    bits = tirx.reinterpret("uint32", value.astype("float32"))
    sign = (bits >> 16) & 0x8000
    magnitude = (bits & 0x7FFFFFFF) >> 13
    zero = tirx.const(0, "uint32")
    moved = tirx.Select(magnitude == zero, zero, magnitude - ((127 - 15) << 10))
    return (sign | moved).astype("uint16")


def _of_half(half: Any, target: str, flags: Any) -> Any:
    """A float16 as a float32 or float64, by its bits.

    A conversion of the CPU would make a signalling NaN quiet, which NumPy's build may not do.
    """
    kind = np.finfo(target)
    bits = f"uint{kind.bits}"

    def whole(number: int) -> Any:  # TVM would cut an int to 32 bits
        return tirx.const(number, bits)

    wide = half.astype(bits)
    sign = (wide & 0x8000) << (kind.bits - 16)
    moved = (wide & 0x7FFF) << (kind.nmant - 10)
    bias = 2 ** (kind.iexp - 1) - 1
    normal = moved + whole((bias - 15) << kind.nmant)
    # A subnormal half is a fraction of the least normal one, from which that is subtracted.
    fraction = tirx.reinterpret(target, moved + whole((bias - 14) << kind.nmant)) - 2.0**-14
    # Where a thread rounds down, a zero is negative then.
    subnormal = tirx.reinterpret(bits, fraction) & whole((1 << (kind.bits - 1)) - 1)
    quiet = (flags & QUIET).astype(bits) << (kind.nmant - 4)
    largest = moved + whole((2 * bias - 30) << kind.nmant)
    zero, top = (tirx.const(each, "uint16") for each in (0, 0x7C00))
    exponent = half & top
    special = tirx.Select((half & 0x03FF) == zero, largest, largest | quiet)
    found = tirx.Select(exponent == zero, subnormal, normal)
    found = tirx.Select(exponent == top, special, found)
    return tirx.reinterpret(target, sign | found)
