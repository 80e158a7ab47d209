"""Spans whose output is one of their sides: every element is read before it is overwritten."""

import ctypes
import mmap

import numpy as np
from pytest import mark

from te_select.base import forks
from te_select.schedules.cpu.span import BACKWARDS, SKIP, STREAM, Span
from tests.support.tir_functions import SPAN_PARAMETERS, compiled, span_function

SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 2049)
LINE = 64
PATIENCE = 60  # seconds


def run(moves, inner=1, length=1, width=4, **how):
    """A span, and the elements of its rows."""
    options = {"streaming": True, "skipping": False, **how}
    return Span(width, *moves, inner, 64, 4 if inner == 1 else 1, **options), inner or length


SPANS = [
    run("fff", skipping=True),
    run("fff", width=1, skipping=True),
    run("fff", width=8, streaming=False),
    run("ffs", skipping=True),
    run("fsf"),
    run("sff"),
    run("sfs"),
    run("ssf"),
    run("off", 3),
    run("ofi", 3),
    run("oif", 7, width=2),
    run("fof", 5),
    run("off", 0, 63, end_to_end=True),
    run("ofi", 0, 63, end_to_end=True),
    run("iff", 0, 63, end_to_end=True),
    run("ofo", 0, 63, end_to_end=True),
    run("off", 0, 1),
    run("off", 0, 3),
    run("off", 0, 17),
]


def operand(rng, moves, shape, dtype):
    """Bits of an operand, in an array that broadcasts to the shape."""
    rows, inner = shape
    extents = {"f": (rows, inner), "o": (rows, 1), "i": (1, inner), "s": (1, 1)}[moves]
    return rng.integers(0, 256, (*extents, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]


@mark.parametrize("span, inner", SPANS, ids=lambda each: getattr(each, "symbol", None))
def test_output_may_be_one_of_the_sides(span, inner, tmp_path):
    call = compiled(span_function(span), tuple(SPAN_PARAMETERS.values()), tmp_path)
    rng = np.random.default_rng(inner)
    sides = {"then": span.then, "else_": span.else_}
    flags = (0, STREAM | BACKWARDS, STREAM | SKIP | BACKWARDS)
    for place, size, flag in np.ndindex(2, len(SIZES), len(flags)):
        name = ("then", "else_")[place]
        if sides[name] != "f":
            continue
        shape = (SIZES[size], inner)
        cond = operand(rng, span.cond, shape, "u1") % 3
        if size % 2 and span.cond == "f":  # whole blocks of one value, and one that is not
            cond = np.where(np.arange(cond.size).reshape(shape) // 100 % 2, cond, size % 4 // 2)
            cond = cond.astype("u1")
        given = {
            side: operand(rng, moves, shape, f"u{span.width}") for side, moves in sides.items()
        }
        want = np.where(cond != 0, given["then"], given["else_"])
        memory = np.empty(want.nbytes + 2 * LINE, np.uint8)
        out = memory[size % LINE :][: want.nbytes].view(want.dtype).reshape(shape)
        out[...] = given[name]
        given[name] = out
        arrays = (out, cond, given["then"], given["else_"])
        call(*(each.ctypes.data for each in arrays), *shape, flags[flag])
        assert np.array_equal(out, want), (name, shape, flags[flag])


KEPT = [
    (run(moves, width=width, skipping=part != "row")[0], part, name)
    for moves, width, part in (
        ("fff", 4, "block"),
        ("fff", 1, "block"),
        ("ffs", 4, "block"),
        ("fsf", 8, "block"),
        ("fff", 4, "vector"),
        ("fsf", 2, "vector"),
        ("sff", 4, "row"),
        ("sfs", 4, "row"),
    )
    for name, moved in zip(("then", "else_"), moves[1:], strict=True)
    if moved == "f"
]


@mark.parametrize("span, part, name", KEPT)
def test_memory_that_stays_is_not_touched(span, part, name, tmp_path):
    call = compiled(span_function(span), tuple(SPAN_PARAMETERS.values()), tmp_path)
    for flag in (SKIP, SKIP | STREAM, SKIP | BACKWARDS):
        done = forks.try_in_child(
            lambda flag=flag: select_around_closed_page(call, span, part, flag, name), PATIENCE
        )
        assert done == 0, (flag, "it was read or written" if done < 0 else "other values")


def select_around_closed_page(call, span, part, flag, name):
    """Select in place, where the page in the middle of three can be neither read nor written."""
    page = mmap.PAGESIZE
    keeps = int(name == "then")
    memory = mmap.mmap(-1, 3 * page)
    out = np.frombuffer(memory, f"u{span.width}")
    first = page // span.width
    last = 2 * page // span.width
    cond = np.full(1 if part == "row" else out.size, keeps, "u1")
    other = np.full(1 if span.then == "s" or span.else_ == "s" else out.size, 7, out.dtype)
    want = out.copy()
    if part == "block":
        changed = np.ones(out.size, bool)
        changed[first:last] = False
        cond[changed] = 1 - keeps
        want[changed] = 7
    elif part == "vector":  # the vector before the page makes its block mixed, or the one after it
        edges = [first - 1, last]
        shift = span.lanes  # so that a block holds vectors of both pages
        cond[edges] = 1 - keeps
        want[edges] = 7
        out, cond, want = out[shift:-shift], cond[shift:-shift], want[shift:-shift]
        other = other[shift:-shift] if other.size > 1 else other
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    begin = ctypes.c_void_p(np.frombuffer(memory, "u1").ctypes.data + page)
    assert protect(begin, page, 0) == 0
    sides = (out, other) if name == "then" else (other, out)
    arrays = (out, cond, *sides)
    call(*(each.ctypes.data for each in arrays), out.size, 1, flag)
    assert protect(begin, page, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    assert np.array_equal(out, want)
