"""Random calls of te_select.where beside numpy.where: values, types, layouts, warnings, errors.

Shapes, strides, orders, element types, Python and NumPy numbers are drawn, and objects of which
NumPy makes arrays. A part of the calls writes to an array of the caller.
"""

from typing import Any

import numpy as np

import te_select
from soak.found import Found
from tests.support.neighbours import as_neighbour
from tests.support.where_calls import difference, outcome, random_call, strided

_CALLS = 1500
_WITH_OUT = 0.25
_NEIGHBOURS = 0.3  # of the operands


def attack(seed: int, found: Found, calls: int = _CALLS) -> None:
    """Compare random calls, half of them of more than 4,096 elements, with numpy.where."""
    for number in range(calls):
        draw = [seed, number]
        rng = np.random.default_rng(draw)
        arguments = [
            as_neighbour(rng, each) if rng.random() < _NEIGHBOURS else each
            for each in random_call(rng)
        ]
        expected = outcome(np.where, arguments)
        found.doing(f"random_call({draw})")
        found.tried("calls")
        problem = difference(outcome(te_select.where, arguments), expected)
        if problem is None and np.random.default_rng([*draw, 1]).random() < _WITH_OUT:
            found.tried("calls with out=")
            problem = _into(arguments, expected[0], np.random.default_rng(draw))
        if problem is not None:
            found.failed(f"random_call({draw}): {problem}")


def _into(arguments: Any, expected: Any, rng: np.random.Generator) -> str | None:
    """What is wrong if a call writes to an array of some strides; None if nothing is."""
    if not isinstance(expected, np.ndarray):
        return None
    out = strided(rng, expected.shape, expected.dtype)
    if not out.flags.writeable:
        return None
    found, _ = outcome(lambda *given: te_select.where(*given, out=out), arguments)
    if found is not out:
        return f"out= gave {found!r}"
    if out.dtype.hasobject or out.dtype.char in "gG":  # of whose bytes some are padding
        return None if repr(out.tolist()) == repr(expected.tolist()) else "elements of out differ"
    return None if out.tobytes() == expected.tobytes() else "bits of out differ"
