"""No call keeps a reference or memory, whatever way it takes."""

import gc
import sys
import warnings

import numpy as np
import pytest

import te_select
from tests.support.neighbours import ByMethod, OfItsOwnRule

CALLS = 1000
TYPES = {name: np.dtype(name) for name in ("?", "f4", "f8", "i8", "u1", "M8[s]", "O")}
COND, LARGE = np.array([True, False]), np.ones(20_000, bool)
F4, U1 = np.ones(2, "f4"), np.ones(2, "u1")
DATES = np.ones(2, TYPES["M8[s]"])


class Failing:
    def __array__(self, dtype=None, copy=None):
        raise LookupError


READ_ONLY = F4.copy()
READ_ONLY.flags.writeable = False
WAYS = {
    "same types": (COND, F4, F4),
    "a number": (COND, F4, 2.5),
    "two numbers": (COND, 1, 2.5),
    "numbers alone": (1, 1, 2),
    "scalars of NumPy": (np.True_, np.float32(1), F4),
    "converted": (U1, F4, U1),
    "converted, large": (LARGE.view("u1"), np.ones(20_000, "f4"), np.ones(20_000, "u1")),
    "dates": (COND, DATES, DATES),
    "another order": (np.ones((2, 2), bool).T, np.ones((2, 2), "f4").T, F4),
    "a subclass": (COND, F4.view(np.memmap), F4),
    "a list": ([True, False], F4, [1, 2]),
    "a method": (COND, ByMethod(F4), ByMethod(U1)),
    "a conversion that fails": (ByMethod(COND), ByMethod(F4), Failing()),
    "its own rule": (COND, OfItsOwnRule(), F4),
    "objects": (COND, None, F4),
    "overflow": (COND, F4, 1e300),
    "too large": (COND, F4, 10**400),
    "nothing": (COND[:0], F4[:0], 1.0),
    "shapes": (COND, F4, np.ones(3)),
    "cond of texts": (np.array(["a", ""]), F4, F4),
    "no common type": (COND, DATES, U1),
    "nonzero": (COND,),
    "two arguments": (COND, F4),
    "five": (COND, F4, F4, F4, F4),
    "many": (COND,) * 9,
}
OUTS = {
    "out": F4.copy(),
    "out of another type": np.ones(2),
    "out of another shape": np.ones(3, "f4"),
    "read-only out": READ_ONLY,
    "out of a subclass": np.ones(2, "f4").view(np.memmap),
    "no array": [1, 2],
    "None": None,
}
CASES = [(given, {}) for given in WAYS.values()]
CASES += [((COND, F4, y), {"out": out}) for y in (F4, [1, 2]) for out in OUTS.values()]
CASES += [((COND, F4, 1.0), {"out": F4[::-1]}), ((COND, F4, F4), {"axis": 1})]
NAMES = [*WAYS, *OUTS, *(f"{name}, a list" for name in OUTS), "out that overlaps", "axis"]


def called(given, options):
    try:
        te_select.where(*given, **options)
    except (LookupError, OverflowError, TypeError, ValueError):
        return


def counts(*things):
    things += (
        *TYPES.values(),
        COND,
        F4,
        U1,
        None,
        True,
        NotImplemented,
        np.ndarray.__array_function__,
        np.ndarray,
        "out",
    )
    return [sys.getrefcount(thing) for thing in (*things, te_select.where, np.where)]


@pytest.mark.slow
@pytest.mark.parametrize("given, options", CASES, ids=NAMES)
def test_call_keeps_nothing(given, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(20):
            called(given, options)
        gc.collect()
        before, blocks = counts(*given, *options.values()), sys.getallocatedblocks()
        for _ in range(CALLS):
            called(given, options)
        gc.collect()
        grown = np.subtract(counts(*given, *options.values()), before)
        more = sys.getallocatedblocks() - blocks
    assert np.abs(grown).max() < CALLS // 5 and abs(more) < CALLS // 5, (grown, more)


@pytest.mark.parametrize("failing", [0, 1])
def test_arrays_made_before_an_operand_that_raises_are_dropped(failing):
    sides = [ByMethod(F4), ByMethod(F4)]
    sides[failing] = Failing()
    before = counts()
    for _ in range(100):
        called((ByMethod(COND), *sides), {})
    assert np.abs(np.subtract(counts(), before)).max() < 50


@pytest.mark.parametrize("kind", ["common", "left to torch", "refused"])
def test_call_with_tensors_keeps_nothing(kind):
    torch = pytest.importorskip("torch")
    cond, x = torch.tensor([True, False]), torch.ones(2)
    given = {
        "common": (cond, x, x),
        "left to torch": (cond, x.int(), x),
        "refused": (cond, x, torch.ones(3)),
    }[kind]
    for _ in range(2):
        before, blocks = [sys.getrefcount(each) for each in given], sys.getallocatedblocks()
        for _ in range(CALLS):
            try:
                te_select.where(*given)
            except RuntimeError:
                continue
        after, more = [sys.getrefcount(each) for each in given], sys.getallocatedblocks() - blocks
    assert after == before and abs(more) < CALLS // 5
