"""Spans whose output is one of their sides: every element is read before it is overwritten."""

from __future__ import annotations

import numpy as np
import pytest

from te_select.schedules.cpu.flags import BACKWARDS, SKIP, STREAM
from te_select.schedules.cpu.span import Span
from tests.support.tir_functions import SPAN_PARAMETERS, compiled, span_function

SIZES = (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000, 2049)
LINE = 64


def run(moves: str, inner: int = 1, length: int = 1, width: int = 4, **how: bool) -> tuple:
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


def operand(rng: np.random.Generator, moves: str, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Bits of an operand, in an array that broadcasts to the shape."""
    rows, inner = shape
    extents = {"f": (rows, inner), "o": (rows, 1), "i": (1, inner), "s": (1, 1)}[moves]
    return rng.integers(0, 256, (*extents, np.dtype(dtype).itemsize), np.uint8).view(dtype)[..., 0]


@pytest.mark.parametrize(("span", "inner"), SPANS, ids=lambda each: getattr(each, "symbol", None))
def test_output_may_be_one_of_the_sides(span: Span, inner: int, tmp_path) -> None:
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
