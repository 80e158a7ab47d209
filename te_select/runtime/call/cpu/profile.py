"""The machine on which a library runs, and what the library decides by it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

# The function of a library that returns the address of the description.
LOCATOR = "te_select_machine"
NEVER = 1 << 60
# The keys of a profile, as ``TE_SELECT_PROFILE`` and the user's file have them.
DECISIONS = (
    "stream_per_thread",
    "stream_per_l3",
    "fill_per_thread",
    "fill_per_l3",
    "fill_reads",
    "bytes_per_thread",
    "skip",
    "backwards",
)
EXPECTED = f"a comma list of KEY=NUMBER, with the keys {', '.join(DECISIONS)}"
_NUMBERS = ("family", "model", "l2", "l3", "threads_per_l3", "threads")
_PAST_THE_CACHE = {"stores_past_the_cache": "moved", "fills_past_the_cache": "of output"}
ADVICE = (
    "the profile of this machine is only reasoned; te-select profile measures it in 8 s, by which "
    "large calls gained 1.03x and 1.2x on two machines"
)
_SKIPPING = (
    "never",
    "in large calls that read cond once, in runs of one value",
    "in large calls",
)


@dataclass(frozen=True)
class Profile:
    """A machine, and what a library decides on it.

    Parameters
    ----------
    machine
        ``vendor``, ``family`` and ``model`` as CPUID has them; ``l2``, bytes of the second-level
        cache of a core; ``l3``, bytes of a last-level cache; ``threads_per_l3``, how many share
        it; ``threads``, how many a call may use.
    origin
        Where the decisions come from: ``"measured: NAME"`` or ``"reasoned: NAME"`` of the table in
        ``profile.c``, ``"measured by the user"``, or ``"TE_SELECT_PROFILE"``.
    decisions
        The values of `DECISIONS`, as ``te_select_decisions`` of ``machine.h`` has them.
    file
        The path of the user's file for this machine, which may not exist; empty if there is no
        home folder.
    problem
        What is wrong with that file, ``TE_SELECT_PROFILE`` or ``TE_SELECT_NUM_THREADS``; empty if
        nothing is.
    is_refused
        Whether one of the variables is wrong; then every call is refused.
    past_the_cache
        ``stores_past_the_cache``: from how many bytes moved on the stores of calls on the most
        threads go past the cache. ``fills_past_the_cache``: the same in bytes of output, for calls
        that read less than ``fill_reads`` allows.
    """

    machine: Mapping[str, str | int]
    origin: str
    decisions: Mapping[str, int]
    file: str
    problem: str
    is_refused: bool
    past_the_cache: Mapping[str, int]

    @classmethod
    def parse(cls, text: str) -> Profile:
        """Read the ``text`` of a te_select_machine."""
        values = dict(line.split(" = ", 1) for line in text.strip("\n").split("\n"))
        machine: dict[str, str | int] = {"vendor": values["vendor"]}
        machine |= {key: int(values[key]) for key in _NUMBERS}
        problem = values["bad_profile"]
        if not problem and values["bad_file"]:
            problem = f"{values['file']} is left out: {values['bad_file']}"
        decisions = {key: int(values[key]) for key in DECISIONS}
        refused = values["bad_profile"] != ""
        past = {key: int(values[key]) for key in _PAST_THE_CACHE}
        return cls(machine, values["origin"], decisions, values["file"], problem, refused, past)

    @classmethod
    def of_library(cls, function: Callable[[str], Callable[..., Any]]) -> Profile:
        """Ask a loaded library. ``function`` returns an exported function by its name."""
        return cls.parse(ctypes.string_at(function(LOCATOR)()).decode(errors="replace"))

    @property
    def advice(self) -> dict[str, str]:
        """What to do about a profile that nobody has measured, in one line; nothing for others."""
        return {"advice": ADVICE} if self.origin.startswith("reasoned") else {}

    @property
    def in_effect(self) -> dict[str, str]:
        """What follows for calls on the most threads that a call may use, in words."""
        past = self.past_the_cache.items()
        grain = self.decisions["bytes_per_thread"]
        return {
            "threads": str(self.machine["threads"]),
            **{key: from_bytes(first, _PAST_THE_CACHE[key]) for key, first in past},
            "another_thread": "never" if grain >= NEVER else f"every {_bytes(grain)} moved",
            "look_at_cond_first": _SKIPPING[self.decisions["skip"]],
            "walk_backwards": "where out lies just ahead"
            if self.decisions["backwards"]
            else "never",
        }


def from_bytes(count: int, what: str) -> str:
    """A threshold in words."""
    return "never" if count >= NEVER else f"from {_bytes(count)} {what} on"


def _bytes(count: int) -> str:
    """A number of bytes, in the largest unit that is not larger than it."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"
