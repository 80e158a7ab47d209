"""Calls of where() with operands of every kind, and what is refused as out."""

import os

import numpy as np
import pytest

from tests.support.neighbours import ByMethod, OfItsOwnRule
from tests.support.where_calls import difference, outcome

SEEDS = pytest.mark.parametrize("seed", range(8))
EACH = int(os.environ.get("TE_SELECT_RANDOM_CALLS", "1600")) // 8  # random calls of a seed
COND = np.array([True, False])
LARGE = np.ones(20_000, bool)
F4, F2, I1, U1 = (np.ones(2, each) for each in ("f4", "f2", "i1", "u1"))
DATES, SPANS, MILLIS = (np.ones(2, each) for each in ("M8[s]", "m8[s]", "M8[ms]"))
SIGNALLING = np.array([0x7FA00001, 0xFFA00002], np.uint32).view("f4")
GRID = np.zeros((5, 7))
TURNED = np.zeros((7, 5)).T
FLAGS = np.zeros((5, 7), bool)
ODD = np.array([1, "a"], object)
REAL = np.random.default_rng(0).random((64, 96), np.float32)
MASK = REAL > 0.5
WINDOWS = np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 3)
DEEP = np.arange(6.0).reshape((1,) * 30 + (2,) + (1,) * 32 + (3,))
HALVES = np.arange(4, dtype=np.float16)
OF_NO_MEMORY = np.broadcast_to(np.float32(1), (1, 2**45))
SIZES = (("a", 1), ("a large", 20_000))
CONDS, ODD_CONDS = (
    {f"{size} cond of {each}": (np.tile(each, n), 1.5, 0) for each in conds for size, n in SIZES}
    for conds in (
        ([np.nan, 0.0, -0.0], [1j, 0, 2]),
        ([b"", b"a", b"0"], [None, "", 3], ["False", "", "x"], np.array(["NaT", 0], "M8[s]")),
    )
)


class Failing:
    def __array__(self, dtype=None, copy=None):
        raise LookupError


class NoRule(type):
    def __getattribute__(cls, name):
        if name == "__array_function__":
            raise RuntimeError("no rule")
        return super().__getattribute__(name)


class Held(ByMethod, metaclass=NoRule):
    pass


class Own(np.ndarray):
    def __array_function__(self, function, types, args, kwargs):
        raise AssertionError("numpy.where asks the operands only")


CALLS = {
    "same types": (COND, F4, F4),
    "signalling NaNs": (COND, SIGNALLING, SIGNALLING),
    "signalling halves": (COND, np.full(2, 0x7D00, "u2").view("f2"), F4),
    "a number": (COND, F4, 2.5),
    "a number of NumPy": (COND, F4, np.float64(3)),
    "a larger kind of number": (COND, I1, 1.5),
    "a complex number": (COND, F4, 1j),
    "a bool": (COND, F4, True),
    "an int beside bools": (COND, COND, 1),
    "two ints": (COND, 1, 2),
    "two numbers": (COND, 1, 2.5),
    "two bools": (COND, True, False),
    "numbers alone": (1, 1, 2),
    "scalars of NumPy": (np.True_, np.float32(1), F4),
    "nothing but scalars": (np.bool_(True), np.float32(1), np.float32(2)),
    "converted": (U1, F4, U1),
    "converted, large": (LARGE.view("u1"), np.ones(20_000, "f4"), np.ones(20_000, "u1")),
    "dates": (COND, DATES, DATES),
    "another order": (np.ones((2, 2), bool).T, np.ones((2, 2), "f4").T, F4),
    "columns": (np.asfortranarray(FLAGS), TURNED, 1),
    "rows of cond, columns": (FLAGS, TURNED, 1),
    "columns of cond, rows": (np.asfortranarray(FLAGS), GRID, 1),
    "a row of cond, columns": (FLAGS[0], TURNED, 1),
    "a cond, columns": (True, TURNED, 1),
    "backwards": (FLAGS[::-1], GRID[::-1], GRID[::-1]),
    "steps": (FLAGS[:, ::2], GRID[:, ::2], 0.0),
    "axes of cond alone": (
        np.zeros((3, 1, 4, 2), bool).transpose(3, 1, 0, 2), np.float32(1), np.float32(2)),
    "windows": (True, WINDOWS, 1.0),
    "64 dims": (DEEP > 2, DEEP, 0),
    "nonzero bytes": (np.array([0, 1, 2, 128, 255] * 100, np.uint8).view(bool), 1, 0),
    **CONDS,
    **{f"cond {n}, {kind}": (n, *sides)
       for n in (2**63, 2**70, -(2**64), 0)
       for kind, sides in {
           "halves": (HALVES, HALVES + 1), "a number": (HALVES, 3.0),
           "a scalar": (np.float16(1), HALVES),
           "converted in pieces": (np.arange(20_000.0), np.arange(20_000, dtype="i4"))}.items()},
    "masked": (COND, np.ma.array([1.0, 2.0], mask=[True, False]), 0.0),
    "a matrix": (COND, np.asmatrix([[1.0, 2.0]]), 0.0),
    "a subclass": (COND, F4.view(np.memmap), F4),
    "a list": ([True, False], F4, [1, 2]),
    "a method": (COND, ByMethod(F4), ByMethod(U1)),
    "a number of a method": (COND, F4, ByMethod(np.array(3.0))),
    "a number of a subclass": (COND, F4, type("Float", (float,), {})(3)),
    "a subclass that a method gives": (COND, ByMethod(F4.view(Own)), F4),
    "elements and a row": (MASK, 0.0, REAL[0]),
    "dates and NaT": (MASK[0], np.arange(96).view("M8[s]"), np.datetime64("NaT")),
}  # fmt: skip
"""Kernels serve them."""
LEFT = {
    "element type": {
        **ODD_CONDS,
        "objects": (COND, ODD, ODD),
        "objects that a method gives": (COND, F4, ByMethod(F4.astype("O"))),
        "None": (COND, F4, None),
        "None beside a list": (COND, [1.0, 2.0], None),
        "another byte order": (COND, F4.astype(">f4"), F4.astype(">f4")),
        "one of another byte order": (COND, F4.astype(">f4"), F4),
        "texts of two kinds": (COND, np.ones(2, "S4"), np.ones(2, "U2")),
        "texts and numbers": (COND, np.ones(2, "S4"), F4),
        "texts of dates": (COND, DATES, np.array(["NaT", "NaT"])),
        "no common type": (COND, DATES, np.ones(2, "i4")),
        "no truth": (np.zeros(2, [("a", "i4"), ("b", "i4")]), 1, 2),
    },
    "promotion": {
        "dates of two units": (COND, DATES, MILLIS),
        "dates of two units, large": (LARGE, np.ones(20_000, "M8[s]"), np.ones(20_000, "M8[ms]")),
    },
    "number": {
        "overflow": (COND, F4, 1e300),
        "a span and an int": (COND, SPANS, 1),
        "halves and 2049": (COND, F2, 2049),
        "halves and -2049": (COND, F2, -2049),
        "bytes and 256": (COND, U1, 256),
        "bytes and -1": (COND, U1, -1),
        "signed bytes and 128": (COND, I1, 128),
        "bytes and 2**63": (COND, U1, 2**63),
        "int of 65 bits": (COND, 1, 2**64),
        "too large": (COND, F4, 10**400),
    },
    "shape": {
        "nothing": (COND[:0], F4[:0], 1.0),
        "nothing beside some": (COND[:0], F4, 1),
        "some beside nothing": (COND, F4, F4[:0]),
        "nothing of any extent": (np.ones((0, 1), bool), OF_NO_MEMORY, OF_NO_MEMORY),
        "shapes": (COND, F4, np.ones(3)),
        "three shapes": (COND, np.ones(3), np.ones(4)),
    },
    "arguments": {
        "no arguments": (),
        "nonzero": (COND,),
        "two arguments": (COND, F4),
        "four": (COND, F4, F4, F4),
    },
    "kind of operand": {"its own rule": (COND, OfItsOwnRule(), F4)},
}  # fmt: skip
"""They are left to NumPy, for a reason."""
UNEXPLAINED = {
    "a rule that cannot be asked for": (COND, Held(F4), 2.0),
    "no array": ([[1], [1, 2]], 1, 2),
    "a conversion that fails": (ByMethod(COND), ByMethod(F4), Failing()),
    "many": (COND,) * 9,
}
"""where() treats them as NumPy does, and explain() does not take them."""
REFUSED = [
    (np.zeros(3), ValueError, r"out has shape \(3,\); expected \(2,\)"),
    (np.zeros((1, 2)), ValueError, r"expected \(2,\)"),
    (np.zeros(2, "f4"), TypeError, "out has element type float32; expected float64"),
    (np.zeros(2, ">f8"), TypeError, "expected float64"),
    ([0.0, 0.0], TypeError, "out is a list"),
    (1.0, TypeError, "out is a float"),
    (np.broadcast_to(np.zeros(1), (2,)), ValueError, "read-only"),
]
"""What is no out for two numbers of float64, and what is said of it."""


def check_out(function, given, out, expected):
    """A call writes to out what it gives without one, with the same warnings, and returns it."""
    result, warned = outcome(lambda *args: function(*args, out=out), given)
    assert result is out
    values, expected_warnings = expected
    found = np.asarray(out).copy("C"), warned
    assert difference(found, (values.copy("C"), expected_warnings)) is None, given
