"""What a door makes of a case, compared with what the oracle says."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from te_select import Workload

NAMES = ("cond", "then", "else_", "out")
Operands = dict[str, Any]
Call = Callable[[Any, Any, Operands], Any]


@dataclass(frozen=True)
class Case:
    """Operands, and what is odd about them.

    Parameters
    ----------
    name
        For people.
    workload
        Of the kernel; None if the case is for the doors of where() only.
    make
        Makes the operands, each time anew.
    oddity
        What doors may refuse, a key of `Door.refuses`; "" if no door may.
    operand
        Which one is odd.
    """

    name: str
    workload: Workload | None
    make: Callable[[], Operands]
    oddity: str = ""
    operand: str = ""

    def __str__(self):
        return self.name


@dataclass(frozen=True)
class Door:
    """A way to call.

    Parameters
    ----------
    call
        Selects into out, by a loaded library, for a workload and operands.
    refuses
        The exception, and a pattern of its text, by the oddity; ``{}`` is the operand.
    skips
        Oddities that cannot reach this door.
    takes
        Whether operands can reach it; None if all can.
    allocates
        Whether it makes an array if out is None.
    any_shapes
        Whether it takes operands that have no workload.
    like
        A call of another library, which the door equals in all that can be told of its result or
        its exception; None if NumPy says what is selected.
    """

    call: Call
    refuses: Mapping[str, tuple[type[Exception], str]] = field(default_factory=dict)
    skips: frozenset[str] = frozenset()
    takes: Callable[[Operands], bool] | None = None
    allocates: bool = False
    any_shapes: bool = False
    like: Call | None = None

    def is_for(self, case):
        """Whether a case can be put to this door."""
        if case.oddity in self.skips or not (self.any_shapes or case.workload):
            return False
        return self.takes is None or self.takes(case.make())


def same(case, door, library=None):
    """Fail unless a door of a library does with a case what the oracle says."""
    if door.like:
        for without in ({}, {"out": None}):
            expected = _outcome(case, door.like, library, without)
            for _ in range(2):  # a call that has been served once may take another path
                assert _outcome(case, door.call, library, without) == expected
        return
    given = case.make()
    memory = _memory(given)
    before = _bytes(memory)
    refusal = door.refuses.get(case.oddity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if refusal:
            wanted = before
            with pytest.raises(refusal[0], match=refusal[1].replace("{}", case.operand)):
                door.call(library, case.workload, given)
        else:
            wanted = _selected(given, memory)
            if door.allocates:
                _same_array(door.call(library, case.workload, given | {"out": None}), _where(given))
            returned = door.call(library, case.workload, given)
            assert returned is None or returned is given["out"]
    assert _bytes(memory) == wanted, f"{case}: other bytes"


def _outcome(case, call, library, without):
    """What a call tells of its result, or its exception; its warnings; and the memory after it."""
    given = case.make()
    memory = _memory(given)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = call(library, case.workload, given | without)
        except Exception as error:
            result = type(error), str(error).splitlines()[0][:60]
    return result, [str(each.message) for each in warned], _bytes(memory)


def _where(given):
    kind = given["out"].dtype
    sides = [given[name] for name in ("then", "else_")]
    if kind.kind not in "biu":  # ml_dtypes takes no int of more than 64 bits
        sides = [float(side) if type(side) is int else side for side in sides]
    return np.where(given["cond"].view(np.uint8) != 0, *(np.asarray(side, kind) for side in sides))


def _same_array(found, expected):
    assert isinstance(found, np.ndarray)
    for fact in ("dtype", "shape", "strides"):
        assert getattr(found, fact) == getattr(expected, fact) or not expected.size
    assert found.tobytes() == expected.tobytes()


def _memory(given):
    """The arrays to whose memory operands belong."""
    bases = {}
    for operand in given.values():
        base = operand
        while isinstance(getattr(base, "base", None), np.ndarray):
            base = base.base
        if isinstance(base, np.ndarray):
            bases[id(base)] = base
    return list(bases.values())


def _bytes(memory):
    return [array.tobytes() for array in memory]


def _selected(given, memory):
    """The bytes of all memory after a call."""
    before = [array.copy() for array in memory]
    given["out"][...] = _where(given)
    after = _bytes(memory)
    for array, kept in zip(memory, before, strict=True):
        array[...] = kept
    return after


def pairs(doors, cases, *, in_turn=False):
    """Parameters of a test: a door and a case that can be put to it, or each case to one door."""
    found = []
    for number, case in enumerate(cases):
        fit = [(name, door) for name, door in doors.items() if door.is_for(case)]
        chosen = [fit[number % len(fit)]] if in_turn and fit else fit
        found += [pytest.param(door, case, id=f"{name}: {case}") for name, door in chosen]
    return found
