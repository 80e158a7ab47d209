"""No call keeps a reference or memory, whatever way it takes."""

import gc
import sys
import warnings

import numpy as np
from pytest import fixture, importorskip, mark

from te_select import where
from tests.selecting.table import CALLS, COND, F4, LEFT, U1, UNEXPLAINED

REPEATS = 1000
TYPES = {name: np.dtype(name) for name in ("?", "f4", "f8", "i8", "u1", "M8[s]", "O")}
READ_ONLY = F4.copy()
READ_ONLY.flags.writeable = False
OUTS = {
    "out": F4.copy(),
    "out of another type": np.ones(2),
    "out of another shape": np.ones(3, "f4"),
    "read-only out": READ_ONLY,
    "out of a subclass": np.ones(2, "f4").view(np.memmap),
    "no array": [1, 2],
    "None": None,
}
BUILT_LATER = "elements and a row"  # for which a kernel is built after some calls
CASES = {
    name: (given, {})
    for table in (CALLS, *LEFT.values(), UNEXPLAINED)
    for name, given in table.items()
    if ("large" not in name or name == "converted, large") and name != BUILT_LATER
}
CASES |= {
    f"{name}{more}": ((COND, F4, y), {"out": out})
    for name, out in OUTS.items()
    for y, more in ((F4, ""), ([1, 2], ", a list"))
}
CASES["out that overlaps"] = (COND, F4, 1.0), {"out": F4[::-1]}
CASES["axis"] = (COND, F4, F4), {"axis": 1}


@fixture(autouse=True, scope="module")
def small_heap():
    """Let gc look at what the tests make alone, not at all modules that are imported."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def called(given, options):
    try:
        where(*given, **options)
    except (LookupError, OverflowError, RuntimeError, TypeError, ValueError):
        return


OTHERS = (*TYPES.values(), COND, F4, U1, None, True, NotImplemented, np.ndarray, "out", np.where)
OTHERS += (np.ndarray.__array_function__, where)


def counts(*things):
    return [sys.getrefcount(thing) for thing in (*things, *OTHERS)]


@mark.parametrize("name", CASES)
def test_call_keeps_nothing(name):
    keeps_nothing(*CASES[name])


def keeps_nothing(given, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(20):
            called(given, options)
        for _ in range(3):  # what earlier tests have left may be freed meanwhile
            gc.collect()
            before = counts(*given, *options.values())
            blocks = sys.getallocatedblocks()
            for _ in range(REPEATS):
                called(given, options)
            gc.collect()
            grown = np.subtract(counts(*given, *options.values()), before)
            more = sys.getallocatedblocks() - blocks
            if np.abs(grown).max() < REPEATS // 5 and abs(more) < REPEATS // 5:
                break
    assert np.abs(grown).max() < REPEATS // 5 and abs(more) < REPEATS // 5, (grown, more)


@mark.parametrize("kind", ["common", "left to torch", "refused"])
def test_call_with_tensors_keeps_nothing(kind):
    torch = importorskip("torch")
    cond = torch.tensor([True, False])
    x = torch.ones(2)
    given = {
        "common": (cond, x, x),
        "left to torch": (cond, x.int(), x),
        "refused": (cond, x, torch.ones(3)),
    }[kind]
    keeps_nothing(given, {})
