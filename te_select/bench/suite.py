"""The fixed suite: named workloads, which ``suite.txt`` lists, and why each is there."""

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from te_select.operator.workload import Workload
from te_select.records.sizes import Ranges
from te_select.timing.inputs import Mask


@dataclass(frozen=True)
class Entry:
    """One workload of a suite.

    Parameters
    ----------
    name
        Its name for ``--only``.
    workload
        The workload; in a suite, of int dims only.
    why
        One line: who uses it, or what it shows.
    ranges, mask, of_where
        For tuning: the sizes of named dims, each a name with the least and the largest size; the
        cond that was seen; and whether it stands for a kernel of `te_select.where`.
    """

    name: str
    workload: Workload
    why: str
    ranges: Ranges = ()
    mask: Mask | None = None
    of_where: bool = False


def _entries(table: str) -> Iterator[Entry]:
    lines = table.splitlines()
    for row, why in zip(lines[::2], lines[1::2], strict=True):
        name, _, words = row.partition(": ")
        given: list[Any] = words.split()
        given[:3] = ([int(size) for size in re.findall(r"\d+", shape)] for shape in given[:3])
        yield Entry(name, Workload(*given), why.strip())


_, *_GROUPS = Path(__file__).with_name("suite.txt").read_text().split("\n\n")
_SMALL, BASELINES, _OTHERS = (tuple(_entries(group)) for group in _GROUPS)
DEFAULT = (*_SMALL, *BASELINES, *_OTHERS)
SUITES = {"default": DEFAULT, "baselines": BASELINES}


def choose(entries: Sequence[Entry], only: str) -> list[Entry]:
    """The entries whose names match a glob.

    Parameters
    ----------
    entries
        A suite.
    only
        A glob such as ``attention-*``.

    Returns
    -------
    list of Entry
        In the order of the suite.

    Raises
    ------
    ValueError
        If none matches.
    """
    chosen = [entry for entry in entries if fnmatch.fnmatchcase(entry.name, only)]
    if not chosen:
        raise ValueError(
            "matches no workload; expected a glob over "
            f"{', '.join(entry.name for entry in entries)}"
        )
    return chosen
